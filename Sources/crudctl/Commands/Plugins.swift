import ArgumentParser

struct Plugins: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the loaded plugins.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("plugin.list"), list: "plugins")
    }
}
