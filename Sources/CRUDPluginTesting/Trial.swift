import CRUDPluginABI

#if canImport(Glibc)
import Glibc
#endif

/// What a check works with, and where it says what it has found.
package final class Trial {
    let plugin: ExportedPlugin
    /// A JSON object.
    let options: String
    /// What the items of the collections are.
    let format: String
    /// The program that writes until it is killed; nil where there is none.
    let storm: StormProgram?
    package private(set) var faults: [String] = []

    /// How many faults of one check are told.
    private static let maximumFaults = 8
    /// Collections of this name are the suite's.
    private static let prefix = "crudd-check "

    init(_ plugin: ExportedPlugin, options: String, format: String, storm: StormProgram?) {
        self.plugin = plugin
        self.options = options
        self.format = format
        self.storm = storm
    }

    /// Opens the storage. The plugin may allow it once at a time.
    func open() throws(CallFault) -> PluginBackend {
        try PluginBackend(plugin, options: options)
    }

    /// Opens the storage that a killed program has left: its own child may outlive it by a moment, so that `unavailable`
    /// is asked again, as the host does, for five seconds.
    func openAfterKill() throws(CallFault) -> PluginBackend {
        let deadline = ContinuousClock.now + .seconds(5)
        while true {
            do throws(CallFault) {
                return try open()
            } catch {
                guard error.status == CRUDD_UNAVAILABLE, ContinuousClock.now < deadline else { throw error }
                poll(nil, 0, 20)
            }
        }
    }

    /// The name of a collection that is not somebody else's.
    func name(_ name: String) -> String { Self.prefix + name }

    /// Opens a collection of the suite's own.
    func collection(_ name: String, of backend: PluginBackend) throws(CallFault) -> PluginCollection {
        try backend.open(self.name(name), format: format)
    }

    /// Removes what a check has left behind, as far as the plugin can.
    func tidy() {
        guard let backend = try? open(), let names = try? backend.collections() else { return }
        for name in names where name.utf8.starts(with: Self.prefix.utf8) { try? backend.drop(name) }
    }

    // MARK: Finding

    /// Notes a fault unless `condition` holds.
    func expect(_ condition: Bool, _ fault: @autoclosure () -> String) {
        if !condition { add(fault()) }
    }

    /// Notes a fault unless both are equal.
    func expect<Value: Equatable>(_ value: Value, is expected: Value, _ what: @autoclosure () -> String) {
        if value != expected { add("\(what()): \(Excerpt(value)), expected \(Excerpt(expected))") }
    }

    /// Notes a fault unless both have the same elements, and tells the first that differs.
    func expect<Element: Equatable>(_ values: [Element], is expected: [Element], _ what: @autoclosure () -> String) {
        if values == expected { return }
        if values.count != expected.count { add("\(what()): there are \(values.count), expected \(expected.count)") }
        guard let index = zip(values, expected).enumerated().first(where: { $1.0 != $1.1 })?.offset else { return }
        add("\(what()), number \(index): \(Excerpt(values[index])), expected \(Excerpt(expected[index]))")
    }

    /// Notes a fault unless both are the same bytes.
    func expectBytes(_ value: [UInt8]?, is expected: [UInt8], _ what: @autoclosure () -> String) {
        if value != expected {
            add("\(what()): \(value.map { "\(Excerpt($0))" } ?? "none"), expected \(Excerpt(expected))")
        }
    }

    /// Notes a fault unless `call` fails with `status` and says why.
    func expectFailure(_ status: Int, of what: String, _ call: () throws(CallFault) -> Void) {
        do {
            try call()
            add("\(what): CRUDD_OK, expected \(StatusText.of(status))")
        } catch {
            expect(error.status == status, "\(what): \(error), expected \(StatusText.of(status))")
        }
    }

    func add(_ fault: String) {
        if faults.count < Self.maximumFaults { faults.append(fault) }
        if faults.count == Self.maximumFaults { faults.append("(more faults are not told)") }
    }
}

/// A value for a line of the report, no longer than a reader wants it.
struct Excerpt: CustomStringConvertible {
    private static let maximumCharacters = 100

    let description: String

    init(_ value: some Any) {
        description = Self.cut(String(describing: value))
    }

    /// Bytes as a text, of which what is none is escaped.
    init(_ bytes: [UInt8]) {
        let text = String(decoding: bytes.prefix(Self.maximumCharacters * 4), as: UTF8.self)
        description = "\(Self.cut(text.debugDescription)) (\(bytes.count) bytes)"
    }

    private static func cut(_ text: String) -> String {
        text.count <= maximumCharacters ? text : "\(text.prefix(maximumCharacters))…"
    }
}
