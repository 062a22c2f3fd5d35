# frozen_string_literal: true

require "test_helper"
require "json"
require "support/broker_console"
require "support/proc_tree"
require "support/servers"
require "tmpdir"
require_relative "../../../bench/support/bundle"

# Job nodes with a real library and a real broker. A test class that includes this says in #jobs which file of
# test/fixtures/swarm/brokers its jobs are in, and in #environment where the broker is.
module BrokerNodes
  include Support::Servers

  # Seconds that a broker is away; with this variable in the environment as many as it says, and the nodes' CPU time
  # is looked at.
  LONG_OUTAGE = "PANDO_TEST_OUTAGE"
  CPU_SHARE = 0.05

  def setup
    skip obstacle if obstacle

    @folder = Dir.mktmpdir("pando-jobs")
    @bundle = Bench::Bundle.new("brokers", File.join(Support::BrokerConsole::FIXTURES, "Gemfile")).prepare
  end

  def teardown
    super
    @console&.close
    FileUtils.rm_rf(@folder) if @folder
  end

  private

  def console = @console ||= Support::BrokerConsole.new(jobs, all_environment)
  def notes_file = File.join(@folder, "notes")
  def all_environment = @bundle.environment.merge("NOTES" => notes_file, **environment)

  # @param node [String] the line's rest
  def swarm(node, config: "")
    file = File.join(Support::BrokerConsole::FIXTURES, jobs)
    text = "refork :manual; stop_timeout 20\n#{config}\nnode #{node}, require: #{file.dump}"
    serve(command: "swarm", config: text, listen: false, env: all_environment)
  end

  # @return [Array<Hash>] what jobs have written
  def notes
    File.exist?(notes_file) ? File.readlines(notes_file).map { |line| JSON.parse(line) } : []
  end

  def names(what) = notes.filter_map { |note| note[what] }

  def wait_for_notes(what, wanted, timeout: 90)
    wait_until(timeout: timeout, message: -> { "#{wanted - names(what)}\n#{servers.last&.output}" }) do
      (wanted - names(what)).empty?
    end
  end

  def note_of(what, name) = notes.find { |note| note[what] == name }
  def go_file = File.join(@folder, "go")
  def go = File.write(go_file, "")

  # @yieldparam seconds [Numeric] for which the broker is to be away
  def outage(server, kind)
    long = ENV[LONG_OUTAGE]&.to_f
    nodes = server.nodes(kind).map(&:pid)
    before = cpu_seconds(nodes)
    yield long || 0
    assert_equal nodes.sort, server.nodes(kind).map(&:pid).sort
    assert_operator cpu_seconds(nodes) - before, :<, CPU_SHARE * long * nodes.size if long
  end

  def cpu_seconds(pids)
    ticks = pids.sum { |pid| File.read("/proc/#{pid}/stat").rpartition(")").last.split.values_at(11, 12).sum(&:to_i) }
    ticks.fdiv(Etc.sysconf(Etc::SC_CLK_TCK))
  end
end
