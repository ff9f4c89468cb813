import CRUDJSON
import CRUDModel

/// The options that the administrator has set, by name and type.
public struct OptionReader<Key: RawRepresentable<String> & CaseIterable> {
    private var values: [String: Value] = [:]

    private enum Value {
        case string(String)
        case number(String)
        case bool(Bool)
        case other
    }

    /// - Throws: ``StorageFailure`` with `invalidOptions` if the text is not a JSON object or has a member that is
    ///   not a `Key`.
    init(text: UnsafeRawBufferPointer) throws(StorageFailure) {
        if text.isEmpty { return }
        do {
            try read(Span(_bytes: text.bytes))
        } catch let failure as StorageFailure {
            throw failure
        } catch {
            throw StorageFailure(.invalidOptions, "the options are not a JSON object")
        }
    }

    // MARK: Values

    /// A string that must be given.
    public func string(_ key: Key) throws(StorageFailure) -> String {
        guard let value = try stringIfPresent(key) else { throw invalid(key, "is missing") }
        return value
    }

    public func string(_ key: Key, default value: String) throws(StorageFailure) -> String {
        try stringIfPresent(key) ?? value
    }

    /// An absolute path that must be given.
    public func absolutePath(_ key: Key) throws(StorageFailure) -> String {
        guard let path = try absolutePathIfPresent(key) else { throw invalid(key, "is missing") }
        return path
    }

    /// An absolute path; nil if it is not given.
    public func absolutePathIfPresent(_ key: Key) throws(StorageFailure) -> String? {
        guard let path = try stringIfPresent(key) else { return nil }
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
            throw invalid(key, "must be an absolute path")
        }
        return path
    }

    /// One of the raw values of `Choice`.
    public func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ key: Key, default value: Choice
    ) throws(StorageFailure) -> Choice {
        guard let name = try stringIfPresent(key) else { return value }
        guard let choice = Choice(rawValue: name) else {
            let names = Choice.allCases.map(\.rawValue)
            let hint = nearestName(to: name.utf8, among: names).map { "; did you mean \($0)?" } ?? ""
            throw invalid(key, "must be one of \(names.joined(separator: ", "))\(hint)")
        }
        return choice
    }

    public func bool(_ key: Key, default value: Bool) throws(StorageFailure) -> Bool {
        switch values[key.rawValue] {
        case nil: return value
        case .bool(let value): return value
        default: throw invalid(key, "must be true or false")
        }
    }

    /// An integer within `range`.
    public func integer(
        _ key: Key, in range: ClosedRange<Int>, default value: Int
    ) throws(StorageFailure) -> Int {
        guard let given = values[key.rawValue] else { return value }
        guard case .number(let text) = given, let number = Int(text), range.contains(number) else {
            throw invalid(key, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A number of bytes: an integer, or one with a unit as in "64MiB" (B, KiB, MiB, GiB); nil if it is not given.
    public func sizeIfPresent(_ key: Key, atLeast minimum: Int = 1) throws(StorageFailure) -> Int? {
        let rule = "must be a number of bytes, such as 67108864 or 64MiB, and at least \(minimum)"
        let text: String
        switch values[key.rawValue] {
        case nil: return nil
        case .number(let digits): text = digits + "B"
        case .string(let size): text = size
        default: throw invalid(key, rule)
        }
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)]
        guard let (suffix, unit) = units.first(where: { text.hasSuffix($0.0) }),
            let count = Int(text.dropLast(suffix.utf8.count)), count >= 0
        else { throw invalid(key, rule) }
        let (size, overflows) = count.multipliedReportingOverflow(by: unit)
        guard !overflows, size >= minimum else { throw invalid(key, rule) }
        return size
    }

    /// A failure that points to `key`, for rules of the plugin's own.
    ///
    /// - Parameter rule: what follows the option's name, as in "must be …".
    public func invalid(_ key: Key, _ rule: String) -> StorageFailure {
        StorageFailure(.invalidOptions, "option \"\(key.rawValue)\" \(rule)", pointer: jsonPointer(to: key.rawValue))
    }

    // MARK: Reading

    private func stringIfPresent(_ key: Key) throws(StorageFailure) -> String? {
        switch values[key.rawValue] {
        case nil: return nil
        case .string(let value): return value
        default: throw invalid(key, "must be a string")
        }
    }

    private mutating func read(_ text: Span<UInt8>) throws {
        var scanner = JSONScanner()
        guard try scanner.peekKind(text) == .object else {
            throw StorageFailure(.invalidOptions, "the options are not a JSON object")
        }
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            let name = String(decoding: key.decodedString(text), as: UTF8.self)
            let value = try scanner.value(text)
            try checkName(name)
            values[name] = Self.decode(value, text)
        }
        guard scanner.isAtEnd(text) else { throw StorageFailure(.invalidOptions, "the options are not a JSON object") }
    }

    private func checkName(_ name: String) throws(StorageFailure) {
        if Key(rawValue: name) == nil {
            let names = Key.allCases.map(\.rawValue)
            let hint = nearestName(to: name.utf8, among: names).map { "did you mean \"\($0)\"?" }
            throw StorageFailure(
                .invalidOptions,
                "unknown option \"\(name)\"; \(hint ?? "there are \(names.joined(separator: ", "))")",
                pointer: jsonPointer(to: name))
        }
        if values[name] != nil {
            throw StorageFailure(.invalidOptions, "option \"\(name)\" is given twice", pointer: jsonPointer(to: name))
        }
    }

    private static func decode(_ value: JSONSlice, _ text: Span<UInt8>) -> Value {
        switch value.kind {
        case .string: return .string(String(decoding: value.decodedString(text), as: UTF8.self))
        case .number:
            var digits = ""
            for index in value.range { digits.unicodeScalars.append(Unicode.Scalar(text[index])) }
            return .number(digits)
        case .true: return .bool(true)
        case .false: return .bool(false)
        case .null, .array, .object: return .other
        }
    }
}

/// The JSON pointer (RFC 6901) to a member of the options.
func jsonPointer(to name: String) -> String {
    var pointer = "/"
    for character in name.unicodeScalars {
        switch character {
        case "~": pointer += "~0"
        case "/": pointer += "~1"
        default: pointer.unicodeScalars.append(character)
        }
    }
    return pointer
}
