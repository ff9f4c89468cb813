import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// Whatever is made of a long item, whoever waits for it is asked now and then whether to stop. Work is counted, not
/// time.
@Suite struct EvaluationWorkTests {
    /// Counts the questions, and stops at one of them.
    private final class Questions {
        private(set) var count = 0
        private let last: Int

        init(stoppingAt last: Int = .max) { self.last = last }

        func ask() -> Bool {
            count += 1
            return count >= last
        }
    }

    /// What is asked once for each 64 KiB may be passed over by a step of as much, and what positions leave uncounted.
    private static let longestStep = 2 * Work.interval + (8 << 10)

    // MARK: Items

    /// Of which one thing alone makes an item long.
    enum Shape: CaseIterable {
        case ascii, twoBytes, fourBytes, markup, escapes, shortEscapes, digits, zeros, whiteSpace, nesting, members
        case longName, escapedName, repeatedMembers, numbers, strings, objects

        /// Whether it is a text whose bytes in UTF-8 are those in the item.
        var isText: Bool {
            switch self {
            case .ascii, .twoBytes, .fourBytes, .markup: true
            default: false
            }
        }

        func item(_ bytes: Int) -> [UInt8] {
            func repeated(_ unit: String) -> String { String(repeating: unit, count: bytes / unit.utf8.count) }
            func list(_ element: String) -> String { "[" + repeated(element + ",") + "0]" }
            let value =
                switch self {
                case .ascii: "\"\(repeated("x"))\""
                case .twoBytes: "\"\(repeated("é"))\""
                case .fourBytes: "\"\(repeated("😀"))\""
                case .markup: "\"\(repeated("&"))\""
                case .escapes: "\"\(repeated(#"\u0061"#))\""
                case .shortEscapes: "\"\(repeated(#"\n"#))\""
                case .digits: repeated("9")
                case .zeros: "1" + repeated("0")
                case .whiteSpace: repeated(" ") + "1"
                case .nesting: list(String(repeating: "[", count: 90) + String(repeating: "]", count: 90))
                case .members:
                    "{" + (0..<bytes / 12).map { #""m\#($0)":\#($0 % 7)"# }.joined(separator: ",") + "}"
                case .longName: #"{"\#(repeated("x"))":1}"#
                case .escapedName: #"{"\#(repeated(#"\u0062"#))":1}"#
                case .repeatedMembers: "{" + repeated(#""e":1,"#) + #""e":2}"#
                case .numbers: list("12.5")
                case .strings: list(#""same""#)
                case .objects: list(#"{"a":{"b":"c"}}"#)
                }
            return Array(#"{"n":1,"t":\#(value)}"#.utf8)
        }
    }

    // MARK: Evaluations

    enum Evaluation: String, CaseIterable {
        case equality, like, list, contains, sort, fields, otherFields, keys, normalization, patch, replacingPatch
        case increment, append, add, toText, fromText, toXML, fromXML, toBinary, fromBinary

        /// How often the bytes of a text are looked at, at least.
        var textPasses: Int {
            switch self {
            case .toXML, .fromXML, .fromBinary: 2
            case .toBinary: 3
            default: 1
            }
        }

        private static func filter(_ text: String) throws -> FilterEvaluator {
            try FilterEvaluator(Filter(cql2Text: text))
        }

        private static func operation(_ operation: FieldOperation, _ fields: String) throws -> FieldPatch {
            let object = Array(fields.utf8)
            let part = FieldOperationTexts.Part(
                operation, JSONSlice(start: 0, end: object.count, kind: .object))
            return try FieldPatch([part], of: object.span, maximumDepth: 128)
        }

        private static func apply(
            _ operation: FieldOperation, _ fields: String, _ item: [UInt8], _ work: inout Work
        ) throws {
            var patch = try Self.operation(operation, fields)
            let text = Array(fields.utf8)
            _ = try patch.apply(to: item.span, text.span, &work)
        }

        /// Evaluates an item.
        ///
        /// - Parameter stored: the stored form that is decoded.
        func evaluate(_ item: [UInt8], stored: [UInt8], _ work: inout Work) throws {
            switch self {
            case .equality, .like, .list, .contains:
                let filter =
                    switch self {
                    case .equality: "t = 'xxxy'"
                    case .like: "t LIKE '%xx%y%_'"
                    case .list: "t IN ('x', 'y')"
                    default: "A_CONTAINS(t, ('samee', 5))"
                    }
                var evaluator = try Self.filter(filter)
                swap(&evaluator.work, &work)
                defer { swap(&evaluator.work, &work) }
                _ = try evaluator.evaluate(item.span)
            case .sort:
                let sort = Array(#"[{"property":"t"},{"property":"u","order":"desc"}]"#.utf8)
                var values = SortValueReader(try SortOrder(json: sort.span))
                try values.find(in: item.span, &work)
                let position = values.position(id: [1].span, in: item.span, &work)
                _ = values.compare(id: [1].span, in: item.span, with: position, &work)
            case .fields, .otherFields:
                let json = Array((self == .fields ? #"["t","n"]"# : #"["n","u.v"]"#).utf8)
                var output: [UInt8] = []
                try FieldProjection(json: json.span).append(of: item.span, to: &output, &work)
            case .keys:
                var encoder = IndexKeyEncoder([PropertyPath(names: ["t"])])
                try encoder.encode(item.span, &work) { _, _ in }
            case .normalization:
                var normalization = ItemNormalization()
                _ = normalization.normalized(item.span, &work)
            case .patch: _ = try MergePatch.apply(Array(#"{"n":2}"#.utf8).span, to: item.span, &work)
            case .replacingPatch: _ = try MergePatch.apply(item.span, to: Array(#"{"n":2,"t":{}}"#.utf8).span, &work)
            case .increment: try Self.apply(.increment, #"{"n":1}"#, item, &work)
            case .append: try Self.apply(.append, #"{"t":[1]}"#, item, &work)
            case .add: try Self.apply(.add, #"{"t":["same",12.5,{"a":{"b":"d"}},[[]]]}"#, item, &work)
            case .toText, .toXML, .toBinary:
                var stored: [UInt8] = []
                try codec.encode(item: item.span, into: &stored, &work)
            case .fromText, .fromXML, .fromBinary:
                var text: [UInt8] = []
                try codec.decode(stored: stored.span, into: &text, maximumBytes: 64 << 20, &work)
            }
        }

        private var codec: Codec {
            switch self {
            case .toXML, .fromXML: Codec(.xml)
            case .toBinary, .fromBinary: Codec(.plist)
            default: Codec(.json)
            }
        }

        /// What it decodes; nil where the format cannot hold the item.
        func stored(_ item: [UInt8]) -> [UInt8]? {
            guard self == .fromXML || self == .fromBinary else { return item }
            var normalization = ItemNormalization()
            let normal = normalization.normalized(item.span) ?? item
            var stored: [UInt8] = []
            return (try? codec.encode(item: normal.span, into: &stored)) == nil ? nil : stored
        }

        /// Whether it need not look at the item: JSON text is copied.
        var copies: Bool { self == .toText }
    }

    private static let bytes = 256 << 10

    // MARK: Tests

    /// The item is looked at as often as it is said, and asked about in between, wherever its bytes are.
    @Test(arguments: Evaluation.allCases.filter { !$0.copies }, Shape.allCases)
    func asksInBetween(evaluation: Evaluation, shape: Shape) throws {
        let item = shape.item(Self.bytes)
        guard let stored = evaluation.stored(item) else { return }
        let questions = Questions()
        var work = Work { questions.ask() }
        do { try evaluation.evaluate(item, stored: stored, &work) } catch let error as CRUDError {
            // A value of another type, or one that the format cannot hold.
            #expect(error.code == .unsupported)
        }
        // Equal strings are stored once, and read as often as they are referred to.
        let isDecoding = evaluation == .fromXML || evaluation == .fromBinary
        let least = min(item.count, isDecoding ? stored.count : .max) * 9 / 10 - 1024
        #expect(work.bytes >= least * (shape.isText ? evaluation.textPasses : 1))
        #expect(work.longestStep <= Self.longestStep)
        #expect(questions.count >= work.bytes / Self.longestStep)
        #expect(!work.isStopped)
    }

    /// It stops at the next step where it is asked to.
    @Test(arguments: Evaluation.allCases.filter { !$0.copies }, Shape.allCases)
    func stops(evaluation: Evaluation, shape: Shape) throws {
        let item = shape.item(Self.bytes)
        guard let stored = evaluation.stored(item) else { return }
        let questions = Questions(stoppingAt: 2)
        var work = Work { questions.ask() }
        try? evaluation.evaluate(item, stored: stored, &work)
        // A short stored form of a long item, say, is less than two questions long.
        guard questions.count > 1 else { return }
        #expect(work.isStopped)
        #expect(questions.count == 2)
        #expect(work.bytes <= 3 * Self.longestStep)
    }

    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func randomItems(seed: UInt64) throws {
        var author = LongItemAuthor(seed: seed)
        let item = Array(author.item(bytes: seed.isMultiple(of: 6) ? 4 << 20 : 1 << (16 + Int(seed % 4))).utf8)
        let evaluations = Evaluation.allCases.filter { !$0.copies }
        for evaluation in seed.isMultiple(of: 6) ? Array(evaluations.shuffled().prefix(4)) : evaluations {
            guard let stored = evaluation.stored(item) else { continue }
            let questions = Questions()
            var work = Work { questions.ask() }
            try? evaluation.evaluate(item, stored: stored, &work)
            #expect(work.longestStep <= Self.longestStep, "\(evaluation) of \(item.prefix(100))")
            #expect(questions.count >= work.bytes / Self.longestStep, "\(evaluation) of \(item.prefix(100))")
        }
    }

    /// What an evaluation makes does not depend on whether it is asked.
    @Test(arguments: Shape.allCases)
    func resultsAreTheSame(shape: Shape) throws {
        let item = shape.item(200 << 10)
        for format in [CollectionRule.Format.xml, .plist] {
            var (stored, other): ([UInt8], [UInt8]) = ([], [])
            var work = Work { false }
            let codec = Codec(format)
            var normalization = ItemNormalization()
            let normal = normalization.normalized(item.span) ?? item
            do throws(CRUDError) {
                try codec.encode(item: normal.span, into: &stored)
            } catch {
                #expect(error.code == .unsupported)
                continue
            }
            try codec.encode(item: normal.span, into: &other, &work)
            #expect(stored == other)
            var text: [UInt8] = []
            try codec.decode(stored: stored.span, into: &text, maximumBytes: 1 << 24, &work)
            let (before, after) = (try JSON(parsing: normal), try JSON(parsing: text))
            #expect(before.text == after.text || [.whiteSpace, .escapes, .escapedName].contains(shape))
        }
    }

    // MARK: Short stored forms of long items

    /// A binary property list stores equal strings once, so that its length does not tell what decoding it takes.
    @Test func aShortFormOfALongItem() throws {
        let text = String(repeating: "x", count: 1000)
        let item = Array("[\((0..<500).map { _ in "\"\(text)\"" }.joined(separator: ","))]".utf8)
        var stored: [UInt8] = []
        try Codec(.plist).encode(item: item.span, into: &stored)
        #expect(stored.count < 8000)
        let isLong = Codec(.plist).isDecoding(stored.span, longerThanOf: LongItem.leastBytes)
        #expect(isLong)
        let isVeryLong = Codec(.plist).isDecoding(stored.span, longerThanOf: 1 << 20)
        #expect(!isVeryLong)
        var (decoded, work) = ([UInt8](), LongItem.shortWork)
        let error = #expect(throws: CRUDError.self) {
            try Codec(.plist).decode(stored: stored.span, into: &decoded, maximumBytes: 1 << 24, &work)
        }
        #expect(error?.code == CRUDError.stopped.code && work.isStopped)
        #expect(work.bytes <= 4 * LongItem.leastBytes + Self.longestStep)
    }
}
