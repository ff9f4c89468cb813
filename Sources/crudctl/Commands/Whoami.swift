import ArgumentParser
import CRUDJSON
import CRUDWire

struct Whoami: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints as whom the daemon knows you, and what its access rules allow you.",
        discussion: "Of two rules that match a collection the first one decides.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        let result = try await call("session.whoami")
        guard printer.format == .table, let caller = ResultObject(result) else { return try show(result) }
        var writer = JSONWriter()
        writer.object { lines in
            lines.member("you", Account.user(caller.integer("uid") ?? 0))
            lines.member(
                "groups",
                strings: (caller.elements("groups") ?? []).compactMap { Int(String(decoding: $0, as: UTF8.self)) }.map(
                    Account.group))
            lines.member("session", caller.integer("session") ?? 0)
            let rules = (caller.elements("access") ?? []).compactMap { ResultObject(Array($0)) }
            for (index, rule) in rules.enumerated() {
                let allow = (rule.strings("allow") ?? []).joined(separator: ", ")
                let collections = rule.strings("collections")?.joined(separator: ", ") ?? "all collections"
                lines.member(index == 0 ? "may" : "and", "\(allow): \(collections)")
            }
            if rules.isEmpty { lines.member("may", "nothing") }
        }
        try show(writer.bytes)
    }
}
