import ArgumentParser
import CRUDWire

struct CallCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Calls any method of the protocol and prints its result.",
        discussion: "The method rpc.discover describes all methods.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The method's name, such as record.read.") var method: String
    @Argument(help: "The request's params, as JSON text.") var params = "{}"

    func run() async throws {
        let text = Array(params.utf8)
        try RawJSON.check(text, what: "PARAMS")
        try show(try await call(method, params: text))
    }
}
