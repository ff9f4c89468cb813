import CRUDModel

/// The message for a name that is not among `known`: it suggests the nearest of them, or lists them if none is near.
func unknown(_ kind: String, _ name: [UInt8], known: [String]) -> String {
    let message = "unknown \(kind) \(quoted(name))"
    if let nearest = nearestName(to: name, among: known) {
        return "\(message), did you mean \(quoted(nearest.utf8))?"
    }
    let listed = 16
    let list = known.prefix(listed).map { quoted($0.utf8) }.joined(separator: ", ")
    return "\(message), known are \(list)" + (known.count > listed ? " and \(known.count - listed) more" : "")
}
