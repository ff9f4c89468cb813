package import CRUDJSON
package import CRUDModel

extension CRUDError {
    /// Writes the `error` object of a response: code, message, and `data` with name, retryable and details.
    package func write(to writer: inout JSONWriter) {
        writer.object { error in
            error.member("code", code.rawValue)
            error.member("message", message)
            error.key("data")
            error.object { data in
                data.member("name", code.name)
                data.member("retryable", isRetryable)
                guard details != Details() else { return }
                data.key("details")
                data.object { details.write(to: &$0) }
            }
        }
    }
}

extension CRUDError.Details {
    fileprivate func write(to writer: inout JSONWriter) {
        func text(_ key: String, _ value: String?) {
            if let value { writer.member(key, value) }
        }
        func number(_ key: String, _ value: Int?) {
            if let value { writer.member(key, value) }
        }
        text("member", member)
        text("limit", limit)
        number("maximum", maximum)
        text("revision", revision)
        number("index", index)
        text("path", path)
        if let node {
            writer.key("node")
            writer.raw(node.utf8)
        }
        text("file", file)
        number("line", line)
        number("column", column)
        number("deleted", deleted)
        if let errors { writer.member("errors", strings: errors) }
    }
}
