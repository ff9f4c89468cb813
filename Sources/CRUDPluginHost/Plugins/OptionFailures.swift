import CRUDJSON
import CRUDModel

/// Every failure that a plugin finds in options, though it reports one at a time: after each, the option that it points
/// to is left out and the rest is checked again.
struct OptionFailures {
    private var options: [UInt8]
    private(set) var all: [PluginFailure] = []
    /// The options that were left out.
    private var wrong: Set<String> = []

    /// So many are reported at most.
    private static let maximum = 16

    /// - Parameters:
    ///   - options: a JSON object.
    ///   - check: has the plugin check options.
    init(of options: [UInt8], _ check: ([UInt8]) throws(PluginFailure) -> Void) {
        self.options = options
        while all.count < Self.maximum {
            do throws(PluginFailure) {
                try check(self.options)
                return
            } catch {
                guard add(error) else { return }
            }
        }
    }

    /// Adds a failure unless it follows from another, and leaves out its option; false if there is no more to find.
    private mutating func add(_ failure: PluginFailure) -> Bool {
        guard failure.isAboutOptions, let name = Self.member(failure.pointer) else {
            if all.isEmpty { all = [failure] }
            return false
        }
        // What was left out, or mistyped, is not also missing.
        guard !wrong.contains(name), !wrong.contains(where: { nearestName(to: $0.utf8, among: [name]) != nil }) else {
            return false
        }
        all.append(failure)
        wrong.insert(name)
        var patch = JSONWriter()
        patch.object { writer in
            writer.key(name)
            writer.null()
        }
        guard let rest = try? MergePatch.apply(patch.bytes.span, to: options.span), rest != options else {
            return false
        }
        options = rest
        return true
    }

    /// The member of the options that a JSON pointer begins with.
    private static func member(_ pointer: String) -> String? {
        let tokens = pointer.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard tokens.count > 1, tokens[0].isEmpty else { return nil }
        return String(tokens[1]).replacing("~1", with: "/").replacing("~0", with: "~")
    }
}

extension PluginFailure {
    /// - Throws: the first failure of the options, with the others.
    static func checkAll(
        _ options: [UInt8], by check: ([UInt8]) throws(PluginFailure) -> Void
    ) throws(PluginFailure) {
        let failures = OptionFailures(of: options, check).all
        guard var first = failures.first else { return }
        first.further = Array(failures.dropFirst())
        throw first
    }
}
