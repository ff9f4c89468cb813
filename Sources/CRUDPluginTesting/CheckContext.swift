import CRUDPluginABI
import Glibc

/// What a check works with, and where it reports what it has found.
package final class CheckContext {
    let plugin: ExportedPlugin
    /// A JSON object.
    let options: String
    /// What the items of the collections are.
    let format: String
    /// The program that writes until it is killed; nil where there is none.
    let crashWorkload: CrashWorkloadProgram?
    /// Why the check has failed, a line each.
    package private(set) var failures: [String] = []

    /// How many failures of one check are reported.
    private static let maximumFailures = 8
    /// Collections of this name are the suite's.
    private static let prefix = "crudd-check "

    init(_ plugin: ExportedPlugin, options: String, format: String, crashWorkload: CrashWorkloadProgram?) {
        self.plugin = plugin
        self.options = options
        self.format = format
        self.crashWorkload = crashWorkload
    }

    /// Opens the storage. The plugin may allow it once at a time.
    ///
    /// - Parameter surplus: by how many bytes the structs are longer than this package knows them.
    func open(surplus: Int = 0, expectedStorage: UInt64 = 0) throws(CallError) -> PluginBackend {
        try PluginBackend(plugin, options: options, surplus: surplus, expectedStorage: expectedStorage)
    }

    /// Opens the storage that a killed program has left. Its own child may outlive it by a moment: while the storage is
    /// unavailable this tries again, as the host does, for five seconds.
    func openAfterKill() throws(CallError) -> PluginBackend {
        let deadline = ContinuousClock.now + .seconds(5)
        while true {
            do throws(CallError) {
                return try open()
            } catch {
                guard error.status == CRUDD_UNAVAILABLE, ContinuousClock.now < deadline else { throw error }
                poll(nil, 0, 20)
            }
        }
    }

    /// The name of a collection of the suite's own.
    func name(_ name: String) -> String { Self.prefix + name }

    /// Opens a collection of the suite's own, or makes it.
    func collection(
        _ name: String, of backend: PluginBackend, indexes: [String] = [], hasSequences: Bool = false
    ) throws(CallError) -> PluginCollection {
        try backend.open(self.name(name), format: format, indexes: indexes, hasSequences: hasSequences)
    }

    /// An item of the format.
    func item(_ number: Int, padding: Int = 0) -> [UInt8] { Sample.item(number, format, padding: padding) }

    /// Removes what checks have left behind, as far as the plugin can.
    func removeCollections() {
        guard let backend = try? open(), let names = try? backend.collections() else { return }
        for name in names where name.utf8.starts(with: Self.prefix.utf8) { try? backend.drop(name) }
    }

    // MARK: Expectations

    /// Reports a failure unless `condition` holds.
    func expect(_ condition: Bool, _ failure: @autoclosure () -> String) {
        if !condition { add(failure()) }
    }

    /// Reports a failure unless both are equal.
    func expect<Value: Equatable>(_ value: Value, is expected: Value, _ what: @autoclosure () -> String) {
        if value != expected { add("\(what()): \(Excerpt(value)), expected \(Excerpt(expected))") }
    }

    /// Reports a failure unless both have the same elements, and names the first that differs.
    func expect<Element: Equatable>(_ values: [Element], is expected: [Element], _ what: @autoclosure () -> String) {
        if values == expected { return }
        if values.count != expected.count { add("\(what()): there are \(values.count), expected \(expected.count)") }
        guard let index = zip(values, expected).enumerated().first(where: { $1.0 != $1.1 })?.offset else { return }
        add("\(what()), number \(index): \(Excerpt(values[index])), expected \(Excerpt(expected[index]))")
    }

    /// Reports a failure unless both are the same sequence numbers.
    ///
    /// - Parameter backend: one whose storage numbers changes itself need only have them in the same order.
    func expectNumbers(
        _ numbers: [UInt64], is expected: [UInt64], of backend: PluginBackend, _ what: @autoclosure () -> String
    ) {
        guard backend.numbersItself else { return expect(numbers, is: expected, what()) }
        func ranks(_ numbers: [UInt64]) -> [Int] { numbers.map { number in numbers.count(where: { $0 < number }) } }
        expect(ranks(numbers), is: ranks(expected), "the order of \(what())")
    }

    /// Reports a failure unless both are the same bytes.
    func expectBytes(_ value: [UInt8]?, is expected: [UInt8], _ what: @autoclosure () -> String) {
        if value != expected {
            add("\(what()): \(value.map { "\(Excerpt($0))" } ?? "none"), expected \(Excerpt(expected))")
        }
    }

    /// Reports a failure unless `call` fails with `status` and says why.
    func expectFailure(_ status: Int, of what: String, _ call: () throws(CallError) -> Void) {
        do {
            try call()
            add("\(what): CRUDD_OK, expected \(StatusText.of(status))")
        } catch {
            expect(error.status == status, "\(what): \(error), expected \(StatusText.of(status))")
        }
    }

    func add(_ failure: String) {
        if failures.count < Self.maximumFailures { failures.append(failure) }
        if failures.count == Self.maximumFailures { failures.append("(further failures are not shown)") }
    }
}
