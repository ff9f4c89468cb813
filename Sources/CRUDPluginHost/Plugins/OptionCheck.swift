import CRUDJSON
import CRUDModel

/// What a plugin says of options: what it can do with them, and everything that it finds wrong, though it reports one
/// failure at a time: after each, the option that it points to is left out and the rest is checked again. One that must
/// be given gets a placeholder instead, so that a missing option hides no other error.
package struct OptionCheck {
    private var options: [UInt8]
    package private(set) var failures: [PluginFailure] = []
    /// What the plugin can do with those options that are sound; nil where there is something else wrong.
    package private(set) var capabilities: Plugin.Capabilities?
    /// The options that were left out or are missing, and how many placeholders each has had.
    private var wrong: [String: Int] = [:]

    /// Why the plugin could not be asked: it ended or did not reply, which the next attempt need not.
    package var doubt: PluginFailure? { failures.first.flatMap { $0.isFinal ? nil : $0 } }

    /// So many are reported at most.
    private static let maximum = 16
    /// So many checks, since a plugin may never be content.
    private static let maximumChecks = 64
    /// What stands in for an option that must be given, one after the other until its plugin accepts one. A check
    /// touches no storage, so that nothing comes of it.
    private static let placeholders = [#""/""#, "\"\"", #""a""#, "1", "true"]

    /// A plugin that could not be asked.
    init(doubt: PluginFailure) {
        options = []
        failures = [doubt]
    }

    /// - Parameters:
    ///   - options: a JSON object.
    ///   - check: has the plugin check options, and say what it can do with them.
    init(of options: [UInt8], _ check: ([UInt8]) throws(PluginFailure) -> Plugin.Capabilities) {
        self.options = options.isEmpty ? Array("{}".utf8) : options
        for _ in 0..<Self.maximumChecks where failures.count < Self.maximum {
            do throws(PluginFailure) {
                capabilities = try check(self.options)
                return
            } catch {
                guard add(error) else { return }
            }
        }
    }

    /// Adds a failure unless it follows from another, and leaves out or replaces its option; false if there is no more
    /// to find.
    private mutating func add(_ failure: PluginFailure) -> Bool {
        guard failure.isAboutOptions, let name = Self.member(failure.pointer) else {
            if failures.isEmpty { failures = [failure] }
            return false
        }
        if wrong[name] == nil {
            let isGiven = replace(name, with: "null")
            // What was mistyped is not also missing.
            if isGiven || !wrong.keys.contains(where: { nearestName(to: $0.utf8, among: [name]) != nil }) {
                failures.append(failure)
            }
            wrong[name] = 0
            if isGiven { return true }
        }
        let count = wrong[name, default: 0]
        guard count < Self.placeholders.count else { return false }
        wrong[name] = count + 1
        return replace(name, with: Self.placeholders[count])
    }

    /// Replaces an option, or leaves it out where `value` is null; false if that changes nothing.
    private mutating func replace(_ name: String, with value: String) -> Bool {
        var patch = JSONWriter()
        patch.object { writer in
            writer.key(name)
            writer.raw(value.utf8)
        }
        guard let replaced = try? MergePatch.apply(patch.bytes.span, to: options.span), replaced != options else {
            return false
        }
        options = replaced
        return true
    }

    /// The member of the options that a JSON pointer begins with.
    private static func member(_ pointer: String) -> String? {
        let tokens = pointer.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard tokens.count > 1, tokens[0].isEmpty else { return nil }
        return String(tokens[1]).replacing("~1", with: "/").replacing("~0", with: "~")
    }
}
