/// Finds out whether a plugin keeps the plugin contract.
///
/// The checks work on collections of their own, which are dropped afterwards, and open and close the storage as they
/// need it: the plugin must not be in use elsewhere, and its other collections are left alone.
package final class ConformanceSuite {
    private let plugin: ExportedPlugin
    private let options: String
    private let storm: StormProgram?
    /// What the backend declares, which its options may have made less than the plugin does.
    private var declared: UInt64

    /// The formats in which records are checked.
    package static let formats = ["json", "xml", "plist"]

    /// - Parameters:
    ///   - options: a JSON object.
    ///   - storm: the program that writes until it is killed; without one, nothing is killed.
    package init(_ plugin: ExportedPlugin, options: String, storm: StormProgram?) {
        self.plugin = plugin
        self.options = options
        self.storm = storm
        declared = plugin.capabilities
    }

    /// What one check came to.
    package enum Verdict: Equatable, Sendable {
        case passed
        /// Why, a line each.
        case failed([String])
        /// Why there was nothing to check.
        case notApplicable(String)
    }

    /// One line of the report.
    package struct Row: Sendable {
        /// Nil for what has none.
        package let format: String?
        package let check: String
        package let verdict: Verdict
    }

    /// Runs every check.
    ///
    /// - Parameters:
    ///   - began: is told what comes next.
    ///   - ended: is told what it came to.
    /// - Throws: why the storage cannot be opened at all.
    package func run(
        began: (_ format: String?, _ check: String) -> Void, ended: (Row) -> Void
    ) throws(CallFault) {
        func run(_ check: Check, _ format: String?) {
            began(format, check.name)
            ended(Row(format: format, check: check.name, verdict: verdict(check, format: format)))
        }
        for check in Check.beforeOpening { run(check, nil) }
        declared = try PluginBackend(plugin, options: options).capabilities
        for check in Check.ofBackend { run(check, nil) }
        for format in Self.formats {
            for check in Check.ofRecords { run(check, format) }
        }
    }

    /// Runs one check, and has what it leaves behind removed.
    package func verdict(_ check: Check, format: String? = nil) -> Verdict {
        let trial = Trial(plugin, options: options, format: format ?? "json", storm: storm)
        guard check.capabilities & ~declared == 0 else { return .notApplicable("not declared") }
        do {
            if format != nil { trial.tidy() }
            try check.body(trial)
        } catch let reason as NotApplicable {
            return .notApplicable(reason.text)
        } catch {
            trial.add("\(error)")
        }
        if format != nil { trial.tidy() }
        return trial.faults.isEmpty ? .passed : .failed(trial.faults)
    }
}

/// Thrown by a check that finds nothing to check.
struct NotApplicable: Error {
    let text: String
}
