import ArgumentParser
import CRUDWire

struct CallCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Calls any method of the protocol and prints its result.",
        discussion: "The method rpc.discover describes all methods.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(
        help: "The method's name, such as record.read.", completion: .list(Method.allCases.map(\.name.description)))
    var method: String
    @Argument(help: "The request's params: JSON text, @FILE, or - for standard input.") var params = "{}"

    func run() async throws {
        try show(try await call(method, params: TextSource(json: params).json("PARAMS")))
    }
}
