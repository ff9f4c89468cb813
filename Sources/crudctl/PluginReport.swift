import CRUDJSON

/// The report of `crudd-plugin-check`: the plugin, its version and capabilities, then a line for each check and
/// below it what was wrong.
struct PluginReport {
    private struct Check {
        let name: String
        let outcome: String
        /// Why it was skipped.
        var reason: String?
        var failures: [String] = []
    }

    private let plugin: String
    private let version: String
    private let capabilities: [String]
    private var checks: [Check] = []

    /// Nil if `text` is no report, because the checks have not begun. Lines that are not part of one are ignored: the
    /// plugin itself has printed them.
    init?(_ text: String) {
        let lines = text.split(separator: "\n")
        let places = lines.indices.dropFirst()
        guard let place = places.first(where: { lines[$0].hasPrefix("version ") }) else { return nil }
        let words = lines[place].dropFirst("version ".count).split(separator: ", ").map(String.init)
        plugin = String(lines[place - 1])
        version = words.first ?? ""
        capabilities = words.dropFirst().filter { $0 != "no capabilities" }
        for line in lines[(place + 1)...] { add(line) }
    }

    private mutating func add(_ line: Substring) {
        let (mark, rest) = (line.prefix(8), line.dropFirst(8))
        switch mark {
        case "ok      ": checks.append(Check(name: String(rest), outcome: "passed"))
        case "-       ":
            let parts = rest.split(separator: " (", maxSplits: 1)
            let reason = parts.count > 1 ? String(parts[1].dropLast()) : nil
            checks.append(Check(name: String(parts.first ?? ""), outcome: "skipped", reason: reason))
        case "FAILED  ": checks.append(Check(name: String(rest), outcome: "failed"))
        case "        " where checks.last?.outcome == "failed":
            checks[checks.count - 1].failures.append(String(rest.drop { $0 == " " }))
        default: break
        }
    }

    /// The report as a JSON object.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { report in
            report.member("plugin", plugin)
            report.member("version", version)
            report.member("capabilities", strings: capabilities)
            report.key("checks")
            report.array { array in
                for check in checks {
                    array.object { object in
                        object.member("check", check.name)
                        object.member("outcome", check.outcome)
                        if let reason = check.reason { object.member("reason", reason) }
                        if !check.failures.isEmpty { object.member("failures", strings: check.failures) }
                    }
                }
            }
        }
        return writer.bytes
    }
}
