# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Which process is whose child, and what each one holds open, according to /proc.
class ProcessTreeTest < Minitest::Test
  include Support::Servers

  REFORKS = 50
  ROLES = ["pando mold", "pando monitor", "pando reactor", "pando service", "pando worker"].freeze

  APP = <<~'RUBY'
    ROUTES = {
      "/stray" => -> { system("sleep 0.01 &") },
      "/keeper" => -> { Process.detach(spawn("exec sleep 30")).pid }
    }.freeze

    run ->(env) { [200, {}, ["#{ROUTES.fetch(env["PATH_INFO"], -> {}).call}"]] }
  RUBY

  CONFIG = <<~RUBY
    workers 2
    refork :manual
    service(:clock) { |service| nil until service.wait(60) }
  RUBY

  def test_fifty_reforks_leave_nothing_behind
    server = serve(app: APP, config: CONFIG)
    server.refork
    before = holdings(server)
    under_requests(server) { REFORKS.times { server.refork } }

    assert_equal(before, holdings(server))
    assert_equal(ROLES, before.keys)
    assert_family(server)
  end

  def test_deaths_leave_nothing_behind
    server = serve(app: APP, config: CONFIG)
    server.refork
    before = holdings(server)
    3.times do
      kill(server, "worker")
      kill(server, "service")
    end
    server.wait_for("generation.current") { Process.kill("KILL", server.mold.pid) }
    server.refork

    assert_equal(before, holdings(server))
    assert_family(server)
  end

  # The monitor is their subreaper, and must not take them for its own.
  def test_what_the_app_leaves_behind_is_buried
    server = serve(app: APP, config: CONFIG)
    server.wait_for("orphan.reaped") { server.get("/stray") }

    assert_predicate(holdings(server), :any?)
    assert_family(server)
  end

  # A helper of a dead worker holds a copy of its link: only the pidfd tells that it is dead.
  def test_a_helper_does_not_hide_the_death_of_its_worker
    server = serve(app: APP, config: "workers 1\nrefork :manual")
    helper = server.get("/keeper").body.to_i
    kill(server, "worker")

    assert_equal(200, server.get("/").status)
    Process.kill("KILL", helper)
    server.wait_past("orphan.reaped", pid: helper)
  end

  private

  # Kills one process of a role and waits until another has taken its place.
  def kill(server, role)
    victim = server.tree.titled(role).first.pid
    server.wait_for("#{role}.ready") { Process.kill("KILL", victim) }
  end

  # What is open in the processes of each role, once a rollout is through.
  def holdings(server)
    seen = nil
    wait_until_still(message: -> { "siblings that hold the same: #{seen || server.processes}" }) do
      seen = settled(server)&.group_by { |process| process.title[/\Apando \w+/] }&.sort.to_h
                            .transform_values { |members| members.map(&:descriptor_kinds).uniq }
      seen.transform_values(&:first) if seen.any? && seen.each_value.all?(&:one?)
    rescue Errno::ENOENT, Errno::ESRCH
      nil # one of them has just gone
    end
  end

  def settled(server)
    processes = server.processes
    # A process that looks at itself opens a folder for that.
    roles = processes.map { |process| process.title[/\Apando \w+/] }
    return unless processes.size == 6 && roles.uniq.compact.sort == ROLES
    return if processes.any? { |process| process.title.match?(/booting|busy/) || looks_at_itself?(process) }

    # The monitor has heard of all births and deaths that /proc shows.
    monitor = processes.find { |process| process.pid == server.pid }
    return unless monitor&.descriptor_kinds.to_h["anon_inode:[pidfd]"] == 5

    newest = processes.filter_map { |process| process.title[/gen (\d+)/, 1] }.uniq
    processes if newest.size == 1
  end

  def looks_at_itself?(process) = process.descriptor_kinds.to_h.any? { |kind, _| kind.start_with?("/proc/") }

  def assert_family(server)
    children = server.tree.children
    strangers = server.processes.map(&:pid) - [server.pid, *children.map(&:pid)]

    assert_empty(strangers, "all are children of the monitor")
    assert_empty(server.tree.grandchildren)
    assert_empty(server.tree.zombies)
    assert_equal(5, children.size, children.inspect)
  end
end
