import CRUDJSON
package import CRUDModel

extension CRUDError {
    /// Reads an `error` object outside of a response; nil if it is not one.
    package init?(errorObject text: [UInt8]) {
        var scanner = JSONScanner()
        guard let slice = try? scanner.value(text.span) else { return nil }
        self.init(errorObject: slice, text.span)
    }

    /// Reads the `error` object of a response; nil if it is not one. Details that this version does not know are
    /// dropped.
    init?(errorObject slice: JSONSlice, _ text: Span<UInt8>) {
        guard let members = JSONMembers(of: slice, text), let code = members.integer("code", text),
            let message = members.string("message", text)
        else { return nil }
        self.init(Code(rawValue: code), message)
        if let data = members.object("data", text), let details = data.object("details", text) {
            self.details = Details(details, text)
        }
    }
}

extension CRUDError.Details {
    fileprivate init(_ members: JSONMembers, _ text: Span<UInt8>) {
        self.init(
            member: members.string("member", text), limit: members.string("limit", text),
            maximum: members.integer("maximum", text), revision: members.string("revision", text),
            index: members.integer("index", text), path: members.string("path", text),
            node: members.value("node", text)?.verbatim(text), file: members.string("file", text),
            line: members.integer("line", text), column: members.integer("column", text),
            deleted: members.integer("deleted", text),
            errors: members.value("errors", text)?.elements(text)?.compactMap { $0.string(text) })
    }
}
