/// The names of properties in `--fields` and `--sort`, between commas.
///
/// A backslash takes the meaning from a comma, and from a dash at the beginning. Dots and backslashes are those of
/// property paths, in which the daemon understands their escapes.
struct PropertyNames {
    /// Without empty ones.
    let names: [String]

    init(_ text: String) {
        names = Self.split(text).filter { !$0.isEmpty }.map(Self.withoutEscapedDash)
    }

    /// The properties of `--sort`, in order.
    static func sortKeys(_ text: String) -> [(property: String, descends: Bool)] {
        split(text).map { key in
            let descends = key.utf8.first == UInt8(ascii: "-")
            return (withoutEscapedDash(descends ? String(key.dropFirst()) : key), descends)
        }
    }

    private static func withoutEscapedDash(_ name: String) -> String {
        name.hasPrefix("\\-") ? String(name.dropFirst()) : name
    }

    private static func split(_ text: String) -> [String] {
        var names = [""]
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case ",": names.append("")
            case "\\":
                switch rest.popFirst() {
                case ",": names[names.count - 1] += ","
                case let escaped?: names[names.count - 1] += "\\\(escaped)"
                case nil: names[names.count - 1] += "\\"
                }
            default: names[names.count - 1].unicodeScalars.append(scalar)
            }
        }
        return names
    }
}
