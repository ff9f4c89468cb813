import CRUDModel
import CRUDWire

/// What a reload would do, for people: a heading and a line for each thing, or that nothing changes.
enum DryRunText {
    static func lines(of outcome: ResultObject) -> [String] {
        func objects(_ name: StaticString, _ line: (ResultObject) -> String) -> [String] {
            (outcome.elements(name) ?? []).compactMap { ResultObject(Array($0)) }.map(line)
        }
        let sections: [(heading: String, lines: [String])] = [
            ("changes", outcome.strings("changes") ?? []),
            ("access lost", outcome.strings("losses") ?? []),
            (
                "moves",
                objects("moving") {
                    let places = "from \(place($0.object("from"))) to \(place($0.object("to")))"
                    return "\(name(of: $0)): \(records(of: $0)) \(places)"
                }
            ),
            ("records that the new format cannot hold", unfit(outcome)),
            ("moves that are cancelled", (outcome.strings("cancelled") ?? []).map { quoted($0.utf8) }),
            (
                "records that are orphaned",
                objects("orphaned") { "\(name(of: $0)): \(records(of: $0)) in \(place($0))" }
            ),
            (
                "indexes that are built",
                objects("indexing") {
                    "\(name(of: $0)): \(quoted(($0.string("property") ?? "").utf8)) of \(records(of: $0))"
                }
            ),
        ]
        let lines = sections.filter { !$0.lines.isEmpty }.flatMap { [$0.heading + ":"] + $0.lines.map { "  " + $0 } }
        return lines.isEmpty ? ["nothing changes"] : lines
    }

    private static func unfit(_ outcome: ResultObject) -> [String] {
        (outcome.elements("moving") ?? []).compactMap { ResultObject(Array($0)) }.flatMap { move -> [String] in
            guard let format = move.object("format"), let checked = format.integer("checked"),
                let refused = format.integer("refused")
            else { return [] }
            let isComplete = format.bool("complete") == true
            guard refused > 0 || !isComplete else { return [] }
            let records = "\(checked) record\(checked == 1 ? "" : "s")"
            let rest = isComplete ? "" : " that were checked in time"
            let first = (format.elements("first") ?? []).compactMap { ResultObject(Array($0)) }.map { record in
                "  \(quoted((record.string("id") ?? "").utf8)): \(record.string("reason") ?? "")"
            }
            return ["\(name(of: move)): \(refused) of \(records)\(rest)"] + first
        }
    }

    private static func name(of object: ResultObject) -> String { quoted((object.string("collection") ?? "").utf8) }

    private static func records(of object: ResultObject) -> String {
        guard let count = object.integer("records") else { return "an unknown number of records" }
        return "\(count) record\(count == 1 ? "" : "s")"
    }

    private static func place(_ place: ResultObject?) -> String {
        "backend \(place?.string("backend") ?? "") as \(place?.string("format") ?? "")"
    }
}
