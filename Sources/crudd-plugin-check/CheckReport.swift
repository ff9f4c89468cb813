import CRUDPluginHost
import CRUDPluginTesting

/// The report of the conformance suite: a line for each check as it ends, and below it what was wrong.
enum CheckReport {
    /// Runs the suite of a plugin; returns whether nothing failed.
    ///
    /// - Throws: why the storage cannot be opened.
    static func print(_ suite: ConformanceSuite, of plugin: Plugin) throws(CallError) -> Bool {
        let capabilities = plugin.capabilities.names.joined(separator: ", ")
        StandardStream.output.write(
            "\(plugin.name)\nversion \(plugin.version), \(capabilities.isEmpty ? "no capabilities" : capabilities)\n")
        let watch = CheckWatch()
        var passed = 0
        var failed = 0
        try suite.run { format, check in
            watch.begin(title(format, check))
        } ended: { row in
            watch.end()
            switch row.verdict {
            case .passed: passed += 1
            case .failed: failed += 1
            case .notApplicable: break
            }
            StandardStream.output.write(lines(row))
        }
        StandardStream.output.write("\(passed) checks passed, \(failed) failed\n")
        return failed == 0
    }

    private static func title(_ format: String?, _ check: String) -> String {
        format.map { "\($0): \(check)" } ?? check
    }

    private static func lines(_ row: ConformanceSuite.Row) -> String {
        let title = title(row.format, row.check)
        switch row.verdict {
        case .passed: return "ok      \(title)\n"
        case .notApplicable(let reason): return "-       \(title) (\(reason))\n"
        case .failed(let failures): return "FAILED  \(title)\n" + failures.map { "            \($0)\n" }.joined()
        }
    }
}
