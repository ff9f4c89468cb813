import ArgumentParser
import CRUDJSON
import CRUDModel
import CRUDWire

struct Can: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints whether the access rules allow a user to call a method; the exit status is 77 if not.",
        discussion: """
            The groups of the user are those of the system's databases; a program that was started earlier may have \
            others. Only administrators may ask for another user than themselves.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "A name or a number.", completion: .shellCommand("getent passwd | cut -d: -f1")) var user: String
    @Argument(
        help: "A method of the protocol, such as record.read.",
        completion: .list(Method.allCases.map(\.name.description)))
    var method: String
    @Argument(help: "The collection's name, where the method has one.", completion: .collections)
    var collection: String?

    func run() async throws {
        let result = try await call("access.check") { params in
            params.member("user", user)
            params.member("method", method)
            if let collection { params.member("collection", collection) }
        }
        guard let answer = ResultObject(result), let isAllowed = answer.bool("allowed") else {
            throw CRUDError(.internalError, "the daemon's reply does not say whether it is allowed")
        }
        if printer.format == .table {
            try StandardOutput.write(Array((Self.text(answer, isAllowed) + "\n").utf8))
        } else {
            try show(result)
        }
        if !isAllowed { throw ExitCode(77) }
    }

    private static func text(_ answer: ResultObject, _ isAllowed: Bool) -> String {
        guard !isAllowed else { return "yes" }
        func list(_ name: StaticString) -> String { (answer.strings(name) ?? []).joined(separator: " and ") }
        let has = list("has")
        return "no: it needs \(list("requires")), and \(Account.user(answer.integer("uid") ?? 0)) has "
            + (has.isEmpty ? "nothing" : has)
    }
}
