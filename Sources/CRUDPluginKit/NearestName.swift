/// The known name that `name` was probably meant to be; nil if none is near.
///
/// Near is an edit distance (insertion, deletion, substitution, or exchange of two neighbours, each 1) of at most a
/// third of the known name's length, and 1 in any case.
func nearestName(to name: String, among known: [String]) -> String? {
    let distances = known.map { (name: $0, distance: editDistance(Array(name.utf8), Array($0.utf8))) }
    guard let nearest = distances.min(by: { $0.distance < $1.distance }) else { return nil }
    return nearest.distance <= max(1, nearest.name.utf8.count / 3) ? nearest.name : nil
}

/// The optimal string alignment distance.
private func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
        var row = [i + 1]
        for j in b.indices {
            var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforeLast[j - 1] + 1) }
            row.append(best)
        }
        (beforeLast, last) = (last, row)
    }
    return last[b.count]
}
