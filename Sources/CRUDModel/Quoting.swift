/// Text of a peer or of a file for a one-line message: in quotes, control characters as escapes, cut at 64 bytes.
package func quoted(_ text: some Sequence<UInt8>) -> String {
    "\"" + visible(text, atMost: 64) + "\""
}

/// Text of a peer or of a file for a one-line message: control characters as escapes.
///
/// - Parameter maximum: after so many bytes it is cut.
package func visible(_ text: some Sequence<UInt8>, atMost maximum: Int) -> String {
    var result = ""
    var length = 0
    for scalar in String(decoding: Array(text), as: UTF8.self).unicodeScalars {
        length += UTF8.width(scalar)
        if length > maximum {
            result += "…"
            break
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: result += scalar.escaped(asASCII: true)
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}
