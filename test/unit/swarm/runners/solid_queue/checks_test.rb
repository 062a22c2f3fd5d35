# frozen_string_literal: true

require "test_helper"
require "support/in_child"
require "pando/swarm/runners/solid_queue"
require "pando/swarm/runners/solid_queue/orphaned_jobs"

# What a node says when its checks fail. The gem is not there, so each test runs in a process that has stand-ins.
class SolidQueueChecksTest < Minitest::Test
  include Support::InChild

  Node = Struct.new(:number, :kind, :options)

  # Stands for a Concurrent::Event that was set at the start.
  class Checked
    def set = nil
    def set? = true
  end

  # Stands for the checker's thread.
  class Checker
    def alive? = true
  end

  # Stands for an app that is loaded.
  module Loaded
    def load(*) = nil
  end

  # One of Solid Queue's processes, as the runner sees it.
  class Part
    attr_accessor :error

    def stopped? = error ? raise(error) : false
    def remove_dead = nil
    def names = []
  end

  def test_an_error_that_lasts_makes_the_node_unhealthy
    said = after(9 => nil, 1 => nil) { NoMethodError.new("undefined method 'alive?'") }

    assert_equal [nil, "its checks of Solid Queue fail again and again: undefined method 'alive?' (NoMethodError)"],
                 said[:health]
    assert_empty said[:events]
  end

  # Another node would fare no better.
  def test_an_error_of_the_database_that_lasts_is_told_by_an_event
    said = after(9 => nil, 1 => nil, 5 => nil) { ActiveRecord::StatementTimeout.new("database is locked") }

    assert_equal [nil, nil, nil], said[:health]
    assert_equal [["broker.lost", "database is locked (ActiveRecord::StatementTimeout)"]], said[:events]
  end

  def test_checks_that_fail_now_and_then_do_not
    said = after(9 => nil, 8 => :mended, 7 => :mended) { NoMethodError.new("undefined method 'alive?'") }

    assert_equal [nil, nil, nil], said[:health]
  end

  def test_the_log_names_an_error_again_when_it_lasts
    assert_equal 3, after(121 => nil) { NoMethodError.new("again") }[:reports]
  end

  # A row that cannot be read, for instance: the threads of the node have been looked after before.
  def test_what_else_fails_is_no_defect_of_the_node
    said = in_child do
      define
      runner, = runner_and_part
      orphans = Object.new.tap { |one| one.define_singleton_method(:recover) { |_| raise ArgumentError, "a bad row" } }
      { "@orphaned_jobs" => orphans, "@checks" => 0 }.each { |name, value| runner.instance_variable_set(name, value) }
      runner.define_singleton_method(:look_at_queues) { nil }
      61.times { runner.send(:check) }
      { health: runner.healthy?, reports: SolidQueue.reports }
    end

    assert_equal({ health: nil, reports: 1 }, said)
  end

  def test_a_version_that_is_too_old_fails_the_boot
    message = in_child do
      define
      SolidQueue.const_set(:VERSION, "0.9.0")
      Pando::Swarm::Runners::RailsApp.singleton_class.prepend(Loaded)
      Pando::Swarm::Runners.load(:solid_queue).load(nil)
    rescue Pando::BootError => e
      e.message
    end

    assert_equal "node :solid_queue needs Solid Queue 1.0.0 or newer, and this is 0.9.0 (bundle update solid_queue)",
                 message
  end

  private

  # @param phases [Hash{Integer => Symbol, nil}] numbers of checks; before each phase that is :mended one succeeds
  # @yieldreturn [Exception] the error of each check
  # @return [Hash] the health after each phase, the reports to Solid Queue, and the events
  def after(phases)
    in_child do
      define
      events = []
      Pando::Events.subscribe { |event| events << [event.name, event.payload[:reason]] }
      runner, part = runner_and_part
      health = phases.map do |count, before|
        part.error = nil
        runner.send(:check) if before
        part.error = yield
        count.times { runner.send(:check) }
        runner.healthy?
      end
      { health: health, reports: SolidQueue.reports, events: events }
    end
  end

  def runner_and_part
    runner = Pando::Swarm::Runners::SolidQueue.new(Node.new(0, :jobs, {}))
    part = Part.new
    { "@processes" => [part], "@checker" => Checker.new, "@checks" => 1 }.each do |name, value|
      runner.instance_variable_set(name, value)
    end
    [runner, part]
  end

  def define
    Object.const_set(:Concurrent, Module.new).const_set(:Event, Checked)
    library = Object.const_set(:SolidQueue, Module.new)
    library.singleton_class.attr_accessor :reports, :on_thread_error
    library.reports = 0
    library.define_singleton_method(:instrument) { |_name, **| self.reports += 1 }
    define_errors
  end

  def define_errors
    record = Object.const_set(:ActiveRecord, Module.new)
    error = record.const_set(:ActiveRecordError, Class.new(StandardError))
    %i[ConnectionNotEstablished ConnectionFailed StatementTimeout].each do |name|
      record.const_set(name, Class.new(error))
    end
  end
end
