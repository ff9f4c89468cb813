import CRUDPluginTesting
import CRUDTestSupport
import Testing

/// What a collection costs beside thousands of others, in processor time, which other programs do not take.
@Suite struct ManyCollectionsTests {
    private let directory: TemporaryDirectory
    private static let few = 20
    private static let many = 2000

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func backend() throws -> PluginBackend {
        try PluginBackend(path: "\(directory.path)/main.sqlite", synchronous: "off")
    }

    /// The least that one of some calls takes of this thread's time.
    private func cost(of numbers: Range<Int>, _ body: (Int) throws -> Void) throws -> Duration {
        try numbers.map { number in try ThreadTime.measure { try body(number) } }.min() ?? .zero
    }

    /// SQLite itself reads its list of tables with each new one; it is not to parse them all.
    @Test func aNewOneParsesNoOther() throws {
        let backend = try backend()
        let first = try cost(of: 0..<Self.few) { _ = try backend.open("c\($0)") }
        for number in Self.few..<Self.many { _ = try backend.open("c\(number)") }
        let last = try cost(of: Self.many..<Self.many + Self.few) { _ = try backend.open("c\($0)") }
        #expect(last < first * 12, "\(first) beside none, \(last) beside \(Self.many)")
    }

    @Test func openingOneLooksAtNoOther() throws {
        for number in 0..<Self.few { _ = try backend().open("c\(number)") }
        // The first of a connection reads the schema.
        let small = try backend()
        _ = try small.open("c0", creates: false)
        let first = try cost(of: 1..<Self.few) { _ = try small.open("c\($0)", creates: false) }
        let filling = try backend()
        for number in Self.few..<Self.many { _ = try filling.open("c\(number)") }
        let large = try backend()
        _ = try large.open("c0", creates: false)
        let last = try cost(of: 1..<Self.few) { _ = try large.open("c\($0)", creates: false) }
        #expect(last < first * 3, "\(first) beside \(Self.few), \(last) beside \(Self.many)")
    }
}
