/// Determines whether a plugin conforms to the plugin contract.
///
/// The checks work on collections of their own, which are dropped afterwards, and open and close the storage as they
/// need it: the plugin must not be in use elsewhere, and its other collections are left alone.
package final class ConformanceSuite {
    private let plugin: ExportedPlugin
    private let options: String
    private let crashWorkload: CrashWorkloadProgram?
    /// What the backend declares; its options may have taken away some of what the plugin does.
    private var declared: UInt64

    /// - Parameters:
    ///   - options: a JSON object.
    ///   - crashWorkload: the program that writes until it is killed; without one, nothing is killed.
    package init(_ plugin: ExportedPlugin, options: String, crashWorkload: CrashWorkloadProgram?) {
        self.plugin = plugin
        self.options = options
        self.crashWorkload = crashWorkload
        declared = plugin.capabilities
    }

    /// The outcome of one check.
    package enum Verdict: Equatable, Sendable {
        case passed
        /// Why, a line each.
        case failed([String])
        /// Why there was nothing to check.
        case notApplicable(String)
    }

    /// One line of the report.
    package struct Row: Sendable {
        /// Nil for a check that does not depend on it.
        package let format: String?
        package let check: String
        package let verdict: Verdict
    }

    /// Runs every check.
    ///
    /// - Parameters:
    ///   - began: is told which check comes next.
    ///   - ended: is told its outcome.
    /// - Throws: why the storage cannot be opened at all.
    package func run(
        began: (_ format: String?, _ check: String) -> Void, ended: (Row) -> Void
    ) throws(CallError) {
        func run(_ scope: Check.Scope, _ format: String?) {
            for check in Check.all where check.scope == scope {
                began(format, check.name)
                ended(Row(format: format, check: check.name, verdict: verdict(check, format: format)))
            }
        }
        run(.plugin, nil)
        declared = try PluginBackend(plugin, options: options).capabilities
        run(.backend, nil)
        for format in Sample.formats { run(.records, format) }
    }

    /// Runs one check, and removes what it leaves behind.
    ///
    /// - Parameter format: nil for a check that does not depend on it.
    package func verdict(_ check: Check, format: String? = nil) -> Verdict {
        guard check.capabilities & ~declared == 0 else { return .notApplicable("not declared") }
        let context = CheckContext(
            plugin, options: options, format: format ?? Sample.formats[0], crashWorkload: crashWorkload)
        if check.scope != .plugin { context.removeCollections() }
        defer { if check.scope != .plugin { context.removeCollections() } }
        do {
            try check.body(context)
        } catch let reason as NotApplicable {
            return .notApplicable(reason.text)
        } catch {
            context.add("\(error)")
        }
        return context.failures.isEmpty ? .passed : .failed(context.failures)
    }
}
