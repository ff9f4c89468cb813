/// What to say of a word that is none of `known`: the nearest of them if one is near, else all of them.
func unknown(_ kind: String, _ word: [UInt8], known: [String]) -> String {
    let message = "unknown \(kind) \(quoted(word))"
    if let nearest = nearest(to: word, among: known) { return "\(message), did you mean \(quoted(nearest.utf8))?" }
    let listed = 16
    let list = known.prefix(listed).map { quoted($0.utf8) }.joined(separator: ", ")
    return "\(message), known are \(list)" + (known.count > listed ? " and \(known.count - listed) more" : "")
}

/// The candidate that the fewest typing errors turn into `word`, at most one for every two letters; the first of
/// several. Long words, and candidates after the first few hundred, are not looked at, so that a file full of faults
/// is answered in time.
func nearest(to word: [UInt8], among candidates: [String]) -> String? {
    let longest = 64
    let mostCandidates = 256
    guard word.count <= longest else { return nil }
    var best: (candidate: String, distance: Int)?
    for candidate in candidates.prefix(mostCandidates) {
        let letters = Array(candidate.utf8)
        let bound = max(letters.count, word.count) / 2
        guard letters.count <= longest, abs(letters.count - word.count) <= bound else { continue }
        let distance = typingErrors(word, letters)
        if distance <= bound, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.candidate
}

/// How many letters must be inserted, left out, replaced or swapped with their neighbour to turn one word into the
/// other (the optimal string alignment distance).
private func typingErrors(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for i in left.indices {
        var row = [i + 1]
        for j in right.indices {
            var errors = min(last[j + 1] + 1, row[j] + 1, last[j] + (left[i] == right[j] ? 0 : 1))
            if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                errors = min(errors, beforeLast[j - 1] + 1)
            }
            row.append(errors)
        }
        beforeLast = last
        last = row
    }
    return last[right.count]
}
