package import CRUDJSON

/// The positions of a JSON object's members in its text, by name. Of a repeated member the last one counts.
package struct JSONMembers: Sendable {
    private var members: [(key: JSONSlice, value: JSONSlice)] = []

    /// Finds the members of the object at `slice`; nil if that is not an object.
    package init?(of slice: JSONSlice, _ text: Span<UInt8>) {
        guard slice.kind == .object else { return nil }
        var scanner = JSONScanner(at: slice.start)
        scanner.enter()
        var isFirst = true
        do throws(JSONSyntaxError) {
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                members.append((key, try scanner.value(text)))
            }
        } catch {
            return nil
        }
    }

    /// The value of the member `name`.
    package func value(_ name: StaticString, _ text: Span<UInt8>) -> JSONSlice? {
        for member in members.reversed() where member.key.equals(name, text) { return member.value }
        return nil
    }

    /// The member `name` where it is a string.
    package func string(_ name: StaticString, _ text: Span<UInt8>) -> String? {
        value(name, text)?.string(text)
    }

    /// The member `name` where it is an integer of at most 64 bits.
    package func integer(_ name: StaticString, _ text: Span<UInt8>) -> Int? {
        value(name, text)?.integer(text)
    }

    /// The members of the member `name` where that is an object.
    package func object(_ name: StaticString, _ text: Span<UInt8>) -> JSONMembers? {
        value(name, text).flatMap { JSONMembers(of: $0, text) }
    }
}

extension JSONSlice {
    /// The value of a string; nil where this is not one.
    package func string(_ text: Span<UInt8>) -> String? {
        kind == .string ? String(decoding: decodedString(text), as: UTF8.self) : nil
    }

    /// The value of an integer; nil where this is not one, has a fraction or an exponent, or needs more than 64 bits.
    package func integer(_ text: Span<UInt8>) -> Int? {
        kind == .number ? Int(verbatim(text)) : nil
    }

    /// The value as it is written.
    package func verbatim(_ text: Span<UInt8>) -> String {
        String(decoding: bytes(text), as: UTF8.self)
    }

    /// The value as it is written, as bytes.
    package func bytes(_ text: Span<UInt8>) -> [UInt8] {
        // The buffer is copied before the closure returns.
        text.extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
    }

    /// The elements of an array in text that has been validated, no more than `maximum`; nil where this is not an
    /// array.
    package func elements(_ text: Span<UInt8>, atMost maximum: Int = .max) -> [JSONSlice]? {
        guard kind == .array else { return nil }
        var elements: [JSONSlice] = []
        do throws(JSONSyntaxError) {
            var scanner = JSONScanner(at: start)
            scanner.enter()
            var isFirst = true
            while elements.count < maximum, try scanner.nextElement(text, isFirst: &isFirst) {
                elements.append(try scanner.value(text))
            }
        } catch {
            return nil
        }
        return elements
    }
}
