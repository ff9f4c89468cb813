import CRUDModel
import CYAML

/// Builds a tree from the events of libyaml's parser.
///
/// The tree is built with a stack of open containers instead of recursion, and no deeper than
/// ``maximumDepth``, so that it may be processed by recursion. Anchors, aliases, tags, merge keys, keys that are not
/// scalars, duplicate keys and a second document are reported, and composing continues: one run finds all errors. Only
/// a syntax error, or nesting beyond the maximum, ends it early.
///
/// Events: [libyaml](https://pyyaml.org/wiki/LibYAML).
struct YAMLComposer {
    /// How deeply containers may nest.
    static let maximumDepth = 64

    /// The root of the first document; nil where the file has none, or where composing it ended early.
    private(set) var root: YAMLNode?
    private(set) var diagnostics: [ConfigurationDiagnostic] = []
    /// False where composing ended early.
    private(set) var isComplete = true

    private let file: String
    private var open: [Container] = []

    /// Composes `bytes`, the contents of `file`.
    init(_ bytes: [UInt8], file: String) {
        self.file = file
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let text = bytes.starts(with: byteOrderMark) ? Array(bytes.dropFirst(byteOrderMark.count)) : bytes
        // libyaml asserts that its input has an address, which that of an empty array need not have.
        if !text.isEmpty { parse(text) }
        if !isComplete { root = nil }
    }

    // MARK: Parser

    private mutating func parse(_ text: [UInt8]) {
        var parser = yaml_parser_t()
        // The parser keeps its own address, and that of its input, from initialize to delete.
        withUnsafeMutablePointer(to: &parser) { parser in
            text.withUnsafeBufferPointer { input in
                guard yaml_parser_initialize(parser) == 1 else { return fail(at: .start, "out of memory") }
                defer { yaml_parser_delete(parser) }
                yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
                yaml_parser_set_input_string(parser, input.baseAddress, input.count)
                var isEnd = false
                while !isEnd {
                    var event = yaml_event_t()
                    guard yaml_parser_parse(parser, &event) == 1 else {
                        return fail(with: parser.pointee, text)
                    }
                    isEnd = !handle(event)
                    yaml_event_delete(&event)
                }
            }
        }
    }

    /// Handles one event; returns false if it was the last one of interest.
    private mutating func handle(_ event: yaml_event_t) -> Bool {
        let position = SourcePosition(event.start_mark)
        let end = SourcePosition(event.end_mark)
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            reject(hasAnchor: scalar.anchor != nil, hasTag: scalar.tag != nil, at: position)
            // The bytes belong to the event, which lives until this call returns; they are copied here.
            let value = Array(UnsafeBufferPointer(start: scalar.value, count: scalar.length))
            let isPlain = scalar.style == YAML_PLAIN_SCALAR_STYLE
            add(YAMLNode(position: position, end: end, content: .scalar(value, isPlain: isPlain)))
        case YAML_ALIAS_EVENT:
            report(position, "aliases are not supported; text that begins with * needs quotation marks")
            add(YAMLNode(position: position, end: end, content: .invalid))
        case YAML_SEQUENCE_START_EVENT:
            let sequence = event.data.sequence_start
            reject(hasAnchor: sequence.anchor != nil, hasTag: sequence.tag != nil, at: position)
            return enter(Container(position: position, isMapping: false))
        case YAML_MAPPING_START_EVENT:
            let mapping = event.data.mapping_start
            reject(hasAnchor: mapping.anchor != nil, hasTag: mapping.tag != nil, at: position)
            return enter(Container(position: position, isMapping: true))
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT:
            if let container = open.popLast() { add(container.node(end: position)) }
        case YAML_DOCUMENT_START_EVENT:
            guard root != nil else { break }
            report(position, "a second document: the file may have only one")
            return false
        case YAML_STREAM_END_EVENT:
            return false
        default: break
        }
        return true
    }

    private mutating func fail(with parser: yaml_parser_t, _ text: [UInt8]) {
        switch parser.error {
        case YAML_MEMORY_ERROR: fail(at: SourcePosition(parser.mark), "out of memory")
        case YAML_READER_ERROR:
            let problem = parser.problem.map { String(cString: $0) } ?? "it is not UTF-8"
            fail(at: Self.position(ofByte: parser.problem_offset, in: text), "unreadable character: \(problem)")
        default:
            let problem = YAMLProblem(parser, text, open: open.map(\.position))
            // libyaml sees the end of an unfinished last line at the beginning of the line after it.
            fail(at: min(problem.position, Self.position(ofByte: text.count, in: text)), problem.message)
        }
    }

    private mutating func fail(at position: SourcePosition, _ message: String) {
        report(position, message)
        isComplete = false
    }

    private mutating func report(_ position: SourcePosition, _ message: String) {
        diagnostics.append(ConfigurationDiagnostic(file: file, position: position, message: message))
    }

    /// libyaml's reader reports only the byte at which it stopped.
    private static func position(ofByte offset: Int, in text: [UInt8]) -> SourcePosition {
        let before = text.prefix(offset)
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return SourcePosition(
            line: before.count { $0 == UInt8(ascii: "\n") } + 1,
            column: before[lineStart...].count { $0 & 0xC0 != 0x80 } + 1)
    }

    // MARK: Tree

    private mutating func reject(hasAnchor: Bool, hasTag: Bool, at position: SourcePosition) {
        if hasAnchor { report(position, "anchors are not supported") }
        if hasTag { report(position, "tags are not supported") }
    }

    private mutating func enter(_ container: Container) -> Bool {
        guard open.count < Self.maximumDepth else {
            fail(at: container.position, "nested deeper than \(Self.maximumDepth) levels")
            return false
        }
        open.append(container)
        return true
    }

    private mutating func add(_ node: YAMLNode) {
        guard let top = open.indices.last else {
            root = node
            return
        }
        if let message = open[top].add(node) { report(node.position, message) }
    }
}

/// A sequence or mapping that has not been closed yet.
private struct Container {
    /// What a mapping expects next. The value of an invalid key is dropped.
    private enum Expected {
        case key
        case value(of: (key: [UInt8], position: SourcePosition)?)
    }

    let position: SourcePosition
    let isMapping: Bool
    private var elements: [YAMLNode] = []
    private var entries: [YAMLNode.Entry] = []
    private var expected = Expected.key
    private var firstPositions: [[UInt8]: SourcePosition] = [:]

    init(position: SourcePosition, isMapping: Bool) {
        self.position = position
        self.isMapping = isMapping
    }

    func node(end: SourcePosition) -> YAMLNode {
        YAMLNode(position: position, end: end, content: isMapping ? .mapping(entries) : .sequence(elements))
    }

    /// Adds an element, a key or a value; returns the message if it is invalid.
    mutating func add(_ node: YAMLNode) -> String? {
        guard isMapping else {
            elements.append(node)
            return nil
        }
        switch expected {
        case .key: return addKey(node)
        case .value(let key):
            if let key { entries.append(YAMLNode.Entry(key: key.key, keyPosition: key.position, value: node)) }
            expected = .key
            return nil
        }
    }

    private mutating func addKey(_ node: YAMLNode) -> String? {
        expected = .value(of: nil)
        switch node.content {
        case .invalid: return nil
        case .sequence, .mapping: return "a key must be a scalar, not \(node.summary)"
        case .scalar(let key, let isPlain):
            if isPlain, key.elementsEqual("<<".utf8) { return "merge keys are not supported" }
            if let first = firstPositions.updateValue(node.position, forKey: key) {
                firstPositions[key] = first
                return "duplicate key \(quoted(key)), first at \(first.words)"
            }
            expected = .value(of: (key, node.position))
            return nil
        }
    }
}
