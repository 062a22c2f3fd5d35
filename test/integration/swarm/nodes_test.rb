# frozen_string_literal: true

require "test_helper"
require "support/folder_jobs"

# Promise: job nodes are workers of the cluster: they are replaced when they die, hang or say that they are ill, and
# a graceful stop lets their jobs end.
class SwarmNodesTest < Minitest::Test
  include Support::FolderJobs

  def test_jobs_are_done_by_all_nodes_and_a_stop_lets_them_end
    server = swarm("count: 2, concurrency: 2")
    names = Array.new(20) { |number| format("job%02d", number) }
    names.each { |name| order(server, name, "0.02") }
    order(server, "long", "until go")
    wait_for_jobs(server, "done", names)
    wait_for_jobs(server, "doing", ["long"])
    server.wait_for("monitor.stopping") { server.signal("TERM") }

    assert_equal(%w[long], jobs(server, "doing"))
    File.write(File.join(server.folder, "go"), "")
    wait_for_jobs(server, "done", ["long"])
    assert_predicate(server.wait_for_exit, :success?)
    assert_empty(server.complaints)
  end

  def test_beside_a_web_server_of_the_same_folder_it_has_a_socket_of_its_own
    folder = Dir.mktmpdir("pando-both")
    Dir.mkdir(File.join(folder, "config"))
    { "config.ru" => "run ->(_) { [200, {}, []] }",
      "config/pando.rb" => "log_format :json",
      "config/swarm.rb" => "log_format :json\nrequire #{RUNNER.inspect}\nnode(:folder) { FolderRunner.new }" }
      .each { |name, text| File.write(File.join(folder, name), text) }
    web = serve(folder: folder)
    nodes = serve(folder: folder, command: "swarm", listen: false)
    said, status = Open3.capture2e(*Support::Checkout.pando("stop", "-C", folder, "-c", "config/swarm.rb"))

    assert_predicate(status, :success?, said)
    assert_predicate(nodes.wait_for_exit, :success?)
    assert_equal([200, []], [web.get("/").status, nodes.events("control.unavailable")])
  ensure
    web&.kill
    FileUtils.rm_rf(folder) if folder
  end

  def test_a_stop_gives_back_what_does_not_end
    server = swarm("count: 1", "stop_timeout 1")
    order(server, "endless", "hang")
    wait_for_jobs(server, "doing", ["endless"])
    inbox = File.join(server.folder, "inbox")
    Dir.mkdir(kept = File.join(File.dirname(server.folder), "kept-#{File.basename(server.folder)}"))
    File.rename(inbox, File.join(kept, "inbox"))
    File.symlink(File.join(kept, "inbox"), inbox) # the folder goes with the server

    assert_predicate(server.stop, :success?, server.output)
    assert_equal(%w[endless], Dir.children(File.join(kept, "inbox")))
  ensure
    FileUtils.rm_rf(kept) if kept
  end

  def test_a_node_that_is_killed_is_replaced
    server = swarm
    victim = server.nodes("folder").first
    server.wait_for("worker.ready") { Process.kill("KILL", victim.pid) }
    order(server, "after")
    wait_for_jobs(server, "done", ["after"])

    assert_equal(2, server.nodes("folder").size)
  end

  # Its threads tick on, and its main thread beats: what its jobs come to is what counts.
  def test_a_node_whose_jobs_make_no_progress_is_found_and_replaced
    server = swarm("count: 1, timeout: 0.5", "timeout 1, grace: 2")
    order(server, "stuck", "hang")
    stuck = server.wait_past("node.stuck")
    wait_until(message: -> { server.output }) { server.events("worker.ready").size > 1 }
    order(server, "after") # its successor's: the first one is gone, and takes nothing with it
    wait_for_jobs(server, "done", ["after"])

    assert_equal("jobs 1 running", stuck["request"])
    assert_includes(0.5..30.0, stuck["seconds"])
    assert_match(/pid \d+: its jobs make no progress: folder \d, sleep/, server.output) # where they stood
    assert_match(/folder_runner\.rb:\d+:in `sleep'|folder_runner\.rb:\d+:in .*perform/, server.output)
  end

  def test_jobs_that_go_on_may_take_longer_than_the_timeout
    server = swarm("count: 1, timeout: 3", "timeout 3, grace: 1")
    order(server, "long", "until go")
    names = Array.new(6) { |number| "short#{number}" }
    names.each { |name| order(server, name, "0.8") } # beside it, one after another: 4.8 s
    wait_for_jobs(server, "done", names)
    File.write(File.join(server.folder, "go"), "")
    wait_for_jobs(server, "done", ["long"])

    assert_empty(server.events("node.stuck"))
  end

  def test_one_that_is_ill_is_replaced_before_it_leaves
    server = swarm("count: 1")
    ill = server.nodes("folder").first.pid
    ready = server.wait_for("worker.ready") { File.write(File.join(server.folder, "sick"), ill.to_s) }
    server.wait_past("worker.exited", pid: ill)

    refute_equal(ill, ready["pid"])
    assert_equal("the file sick is there", server.events("worker.exited").find do |event|
      event["pid"] == ill
    end["reason"])
  end

  # With its jobs done: it was asked between two looks.
  def test_one_that_takes_too_much_memory_is_replaced
    server = swarm("count: 1, concurrency: 1, memory: 40.mb")
    fat = server.nodes("folder").first.pid
    leaving = server.wait_for("worker.leaving", pid: fat) { order(server, "fat", "keep 80") }
    order(server, "after")
    wait_for_jobs(server, "done", %w[after fat])
    server.wait_for_leavers

    assert_match(/MiB/, leaving["reason"])
    refute_includes(server.nodes("folder").map(&:pid), fat)
  end

  def test_nodes_end_with_their_monitor_and_give_back_what_they_have
    server = swarm("count: 1", "refork :manual; timeout 10, grace: 3")
    nodes = server.nodes("folder").map(&:pid)
    order(server, "endless", "hang")
    wait_for_jobs(server, "doing", ["endless"])
    server.signal("KILL")
    # What has ended stays a zombie where PID 1 reaps nobody.
    wait_until(message: "the end of #{nodes}") { nodes.none? { |pid| File.exist?("/proc/#{pid}/cwd") } }

    assert_equal(%w[endless], jobs(server, "inbox"))
  end

  def test_one_that_cannot_start_again_is_tried_less_and_less_often
    server = swarm("count: 1")
    File.write(File.join(server.folder, "no start"), "")
    server.wait_for("restart.throttled") { Process.kill("KILL", server.nodes("folder").first.pid) }
    wait_until(message: -> { server.output }) { server.events("restart.throttled").size >= 3 }
    damped = server.events("restart.throttled")
    FileUtils.rm(File.join(server.folder, "no start"))
    order(server, "after")
    wait_for_jobs(server, "done", ["after"])

    assert_operator(damped[0]["seconds"], :<, damped[2]["seconds"])
  end

  def test_signals_of_job_processors
    server = swarm
    assert_match(/pid \d+: main thread/, output_after(server, /folder 0.*folder 1/m) { server.signal("TTIN") })
    server.wait_for("nodes.quiet") { server.signal("TSTP") }
    order(server, "late") if quiet?(server)

    # A node that starts now is quiet from the beginning.
    3.times { server.wait_for("worker.ready") { Process.kill("KILL", server.nodes("folder").first.pid) } }
    assert_equal(["late"], jobs(server, "inbox"))
    assert_predicate(server.stop, :success?)
  end

  private

  def output_after(server, pattern)
    seen = server.output.size
    yield
    wait_until(message: -> { server.output[seen..] }) { server.output[seen..].match?(pattern) }
    server.output[seen..]
  end

  # Every thread of theirs has ended, for it takes nothing new.
  def quiet?(server)
    wait_until(message: "quiet nodes") do
      server.nodes("folder").all? { |node| Dir.children("/proc/#{node.pid}/task").size <= 3 }
    end
  end
end
