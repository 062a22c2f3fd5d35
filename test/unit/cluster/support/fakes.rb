# frozen_string_literal: true

require "pando/cluster/monitor"

module ClusterSupport
  # Stands in for the monitor's end of a link: records the orders.
  class FakeLink
    # What was sent: the kinds, all of it, and the descriptors.
    attr_reader :orders, :messages, :descriptors
    attr_accessor :deaf

    def initialize
      @orders = []
      @messages = []
      @descriptors = []
      @closed = false
    end

    def send(message, descriptors = [])
      return false if deaf || closed?

      @orders << message.kind
      @messages << message
      @descriptors << descriptors
      true
    end

    def close = @closed = true
    def closed? = @closed
  end

  # Stands in for a pidfd: records the signals.
  class FakePidfd
    attr_reader :pid, :signals

    def initialize(pid)
      @pid = pid
      @signals = []
    end

    def signal(name)
      @signals << name
      true
    end

    def close; end
  end

  # Stands in for a poller: knows what it watches.
  class FakePoller
    attr_reader :watched

    def initialize
      @watched = []
    end

    def add(io, _subject)
      @watched << io
      self
    end

    def remove(io)
      @watched.delete(io)
      self
    end
  end

  # Records the calls, and returns nil.
  class Recorder
    attr_reader :calls

    def initialize
      @calls = []
    end

    def respond_to_missing?(*) = true

    def method_missing(name, *arguments, **keywords)
      @calls << [name, *arguments, *[keywords].reject(&:empty?)]
      nil
    end
  end

  # Collects the events of a test.
  module Listening
    def setup
      super
      @events = []
      @subscription = Pando::Events.subscribe { |event| @events << event }
    end

    def teardown
      Pando::Events.unsubscribe(@subscription)
      super
    end

    def events(name) = @events.select { |event| event.name == name }
    def event_names = @events.map(&:name)
  end

  OPTIONS = { workers: 2, surge: 1, unavailable: 0, boot_timeout: 60.0, spawn_timeout: 20.0, stop_timeout: 10.0,
              drain: 0.0, drain_delay: 0.0, grace: 1.0, longest_request: 8.0, oom_score_adj: nil, services: [],
              memory: Pando::Cluster::Memory::Limits.new,
              poison: Pando::Cluster::Poison::Terms.new(deaths: 3, within: 60.0) }.freeze

  def self.options(**changes) = Pando::Cluster::Options.new(**OPTIONS, **changes)
  def self.roster(seats = 64) = Pando::Cluster::Roster.new(Pando::Sys::Scoreboard.create(seats))
  def self.ended(status = 0) = Pando::Sys::Ending.new(:exited, status)
  def self.killed(signal = 9) = Pando::Sys::Ending.new(:killed, signal)
end
