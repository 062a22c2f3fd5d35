# frozen_string_literal: true

require "test_helper"
require "support/folder_jobs"

# Promise: the mold of job nodes goes if a node can fork another one soon, and nodes are replaced all the same.
class SwarmReleasedMoldTest < Minitest::Test
  include Support::FolderJobs

  # @return [Support::ServerProcess] whose mold has gone after a refork
  def without_a_mold(node = "count: 3")
    server = swarm(node, "refork :manual; mold :release; rollout canary: false")
    server.refork
    server.wait_past("mold.released", patience: 30)
    server
  end

  def test_a_node_forks_another_one_for_the_replacement_of_a_killed_one
    server = without_a_mold
    names = Array.new(30) { |number| format("job%02d", number) }
    Process.kill("KILL", server.nodes("folder").first.pid)
    healed = server.wait_past("generation.current", purpose: "heal")
    names.each { |name| order(server, name, "0.01") }
    wait_for_jobs(server, "done", names)

    refute_nil(healed["source"])
    assert_equal(names, jobs(server, "done"))
  end

  # None of them can fork one soon, so that the app boots from cold. At most one was asked, and their jobs go on.
  def test_where_all_nodes_are_at_long_jobs
    server = without_a_mold
    names = %w[a b c d e] # each node takes two at most
    names.each { |name| order(server, name, "until go") }
    wait_for_jobs(server, "doing", names)
    Process.kill("KILL", server.nodes("folder").first.pid)
    healed = server.wait_past("generation.current", purpose: "heal", patience: 30)
    order(server, "after")
    wait_for_jobs(server, "done", %w[after])
    File.write(File.join(server.folder, "go"), "")
    wait_until(message: -> { jobs(server, "done").inspect }) { jobs(server, "done").size >= 4 }

    assert_nil(healed["source"])
    asked = server.events("generation.booting").select { |event| event["purpose"] == "heal" && event["source"] }
    assert_operator(asked.size, :<=, 1)
    assert_equal(1, server.events("worker.lost").size)
  end
end
