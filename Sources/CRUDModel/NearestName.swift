/// The known name that a misspelt one was probably meant to be; nil if none is near.
///
/// Near is an edit distance of at most one for every two bytes of the longer name. Of several nearest names the first
/// is returned. Names over 64 bytes and candidates after the 64th are not compared, so that a file full of errors
/// costs little.
package func nearestName(to name: some Sequence<UInt8>, among known: [String]) -> String? {
    let longest = 64
    let mostCandidates = 64
    let name = Array(name)
    guard name.count <= longest else { return nil }
    var best: (name: String, distance: Int)?
    for candidate in known.prefix(mostCandidates) {
        let bytes = Array(candidate.utf8)
        let bound = max(bytes.count, name.count) / 2
        guard bytes.count <= longest, abs(bytes.count - name.count) <= bound else { continue }
        let distance = editDistance(name, bytes)
        if distance <= bound, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.name
}

/// How many bytes must be inserted, deleted, replaced or exchanged with their neighbour to turn one name into the other
/// (the optimal string alignment distance).
private func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in left.indices {
        var row = [i + 1]
        for j in right.indices {
            var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (left[i] == right[j] ? 0 : 1))
            if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                best = min(best, beforeLast[j - 1] + 1)
            }
            row.append(best)
        }
        (beforeLast, last) = (last, row)
    }
    return last[right.count]
}
