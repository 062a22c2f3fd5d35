# frozen_string_literal: true

require "pando/cluster/monitor"
require_relative "clock"
require_relative "fakes"

module ClusterSupport
  # The common part of the tests of the reactor's supervisor: a supervisor with fakes around it.
  module SupervisorCase
    include Clock
    include Listening

    # Stands in for HTTP::ReactorSetup.
    class Setup
      attr_reader :reports, :jobs
      attr_accessor :turns, :stuck

      # @param pools [Array<Integer>] requests that wait for each pool
      attr_writer :blocked

      def initialize
        @reports = @turns = 0
        @blocked = [0, 0]
      end

      def nudge = stuck || @turns += 1
      def blocked = stuck ? [0, 0] : @blocked
      def about(pool, &block) = Pando::Events.about(pool: pool, &block)
      def waiting = [3]
      def routes = ""
      def state = { waiting: 3 }
      def early? = false
      def lanes = 4
      def lane = [File.open(File::NULL), UNIXSocket.pair(:SEQPACKET), File.open(File::NULL)]

      def report(jobs)
        @jobs = jobs
        @reports += 1
      end

      def in_flight = { connections: 3, requests: 2 }
    end

    # Stands in for the spawner: a reactor is there at once, or the fork fails.
    class Spawner
      attr_reader :born
      attr_accessor :refusing

      def initialize(roster)
        @roster = roster
        @born = []
      end

      def reactor(_setup)
        return if refusing

        child = @roster.admit(:reactor, 0, 0, Link.new, nil)
        child.adopt(FakePidfd.new(100 + born.size))
        born << child
        child
      end
    end

    # Stands in for the link to the reactor: accepts as many orders as it has room for.
    class Link
      attr_reader :orders
      attr_accessor :room

      def initialize
        @orders = []
        @room = 1000
      end

      def send(message, descriptors = [])
        return false if @room.zero?

        @room -= 1
        @orders << [message.kind, message.lane, descriptors.size]
        true
      end

      def close = @closed = true
      def closed? = !!@closed
    end

    def setup
      super
      @roster = ClusterSupport.roster
      @setup = Setup.new
      @lanes = Pando::Cluster::Reactor::Lanes.new(@setup, Pando::Cluster::Memory::OomWatch.new)
      @spawner = Spawner.new(@roster)
      @throttles = Pando::Cluster::RestartThrottles.new
      listeners = Pando::Cluster::Listening::Listeners.new
      @supervisor = Pando::Cluster::Reactor::Supervisor.new(@roster, @spawner, @lanes, listeners, @setup,
                                                            throttles: @throttles)
    end

    def reactors = @spawner.born
    def orders = reactors.last.link.orders
    def turn(stopping: false) = @supervisor.reconcile(stopping)

    def worker(ready: true, pool: 0)
      child = @roster.admit(:worker, @roster.size, 0, FakeLink.new, nil, pool)
      child.deadline = now + 20
      @lanes.open_for(child)
      child.adopt(FakePidfd.new(1000 + @roster.size))
      child.become_ready if ready
      child
    end

    # Does the same as ChildEvents.
    def die(child, ending = ClusterSupport.killed)
      child.ending = ending
      @roster.dismiss(child)
      @supervisor.lost if child.reactor?
    end

    def with_reactor
      worker
      turn
      reactors.last.become_ready
    end
  end
end
