import CRUDJSON

/// The result of a call that is a JSON object, with access to its members.
package struct ResultObject: Sendable {
    /// The object's text.
    package let text: [UInt8]
    private let members: JSONMembers

    /// Nil if `text`, which is valid JSON, is not an object.
    package init?(_ text: [UInt8]) {
        var scanner = JSONScanner()
        guard let slice = try? scanner.value(text.span), let members = JSONMembers(of: slice, text.span) else {
            return nil
        }
        self.text = text
        self.members = members
    }

    /// The member `name` where it is a string.
    package func string(_ name: StaticString) -> String? { members.string(name, text.span) }

    /// The member `name` where it is an integer.
    package func integer(_ name: StaticString) -> Int? { members.integer(name, text.span) }

    /// The member `name` where it is true or false.
    package func bool(_ name: StaticString) -> Bool? {
        switch members.value(name, text.span)?.kind {
        case .true: true
        case .false: false
        default: nil
        }
    }

    /// The member `name` as it is written.
    package func value(_ name: StaticString) -> ArraySlice<UInt8>? {
        members.value(name, text.span).map { text[$0.range] }
    }

    /// The member `name` where it is an object.
    package func object(_ name: StaticString) -> ResultObject? {
        value(name).flatMap { ResultObject(Array($0)) }
    }

    /// The strings of the member `name` where it is an array.
    package func strings(_ name: StaticString) -> [String]? {
        members.value(name, text.span)?.elements(text.span)?.compactMap { $0.string(text.span) }
    }

    /// The elements of the member `name`, as they are written, where it is an array.
    package func elements(_ name: StaticString) -> [ArraySlice<UInt8>]? {
        members.value(name, text.span)?.elements(text.span)?.map { text[$0.range] }
    }
}
