# frozen_string_literal: true

# For rows whose uses tell what their server has been told: each generation's word has arrived exactly once, and by
# connections that no other generation has used. Included after RowsApp.
module Arrivals
  private

  # Uses all rows in each of four generations.
  def assert_third_generation(rows)
    @all = []
    third_generation_uses(rows)
    assert_equal RowsApp::REFORKS + 1, @all.size
    @all.transpose.each do |uses|
      uses.each do |use|
        assert use["result"]["said"], use.inspect
        assert use["result"].fetch("thread", true), "a thread of #{use["row"]}"
      end
      assert_words(uses) if uses.last["result"].key?("arrived")
      assert_own_connections(uses)
      offsets = uses.filter_map { |use| use["result"]["offset"] }
      assert_equal offsets.each_index.to_a, offsets, "how many #{uses.first["row"]} had been told before"
    end
  end

  def use_all(rows, generation) = super.tap { |uses| @all&.push(uses) }

  # The server may have been told other words by other tests.
  def assert_words(uses)
    words = uses.map { |use| "#{use["row"]}-in-#{use["worker"]}-said" }
    arrived = uses.last["result"]["arrived"]
    assert_equal words.sort, arrived.select { |word| words.include?(word) }.sort, uses.first["row"]
  end

  def assert_own_connections(uses)
    connections = uses.flat_map { |use| Array(use["result"]["connection"]) }
    assert_equal connections.uniq, connections, "connections of #{uses.first["row"]}"
  end
end
