# frozen_string_literal: true

require "pando/cluster/monitor"
require "pando/hooks"
require_relative "clock"
require_relative "fakes"

module ClusterSupport
  # The monitor's decisions without any process: the test says which children start and end, and how much time passes.
  class Simulation
    include Pando::Cluster

    # Stands in for Refork::Policy.
    Policy = Struct.new(:threshold_value, :allowed) do
      def threshold(_reforks) = threshold_value
      def measures? = false
      def explain = {}
      def serialized_fields = {}
      def take_up(_record, _prefix) = self
      def manual? = allowed
      def choose(workers) = workers.max_by(&:requests)
      def justify(_worker, workers) = "one of #{workers.size}"
    end

    # Stands in for the spawner: forks the ordered child, or fails as the kernel may.
    class Spawner
      attr_accessor :refusing, :crowded
      # Seconds within which the last mold from a worker was to be forked; nil: no limit.
      attr_reader :within

      # @return [Array<Array>] what each cold mold was to boot: command and listeners; empty: those of the pool
      def releases = @releases ||= []

      # @return [Boolean] whether there are lanes for another worker
      def room_beside?(_mold) = !crowded
      def refusal = "no more processes"

      def initialize(roster)
        @roster = roster
      end

      def cold_mold(generation, *release)
        releases << release
        order(:mold, 0, generation, nil)&.tap { |child| child.adopt(FakePidfd.new(Spawner.pid)) }
      end

      def mold_from(worker, generation, within = nil)
        @within = within
        order(:mold, 0, generation, worker)
      end

      def worker(mold, slot) = order(:worker, slot, mold.generation, mold)
      def service(mold, index, _notes) = order(:service, index, mold.generation, mold)

      def cancel(child) = @roster.dismiss(child)

      def self.pid = @pid = (@pid || 1000) + 1

      private

      def order(role, slot, generation, source)
        return if refusing

        @roster.admit(role, slot, generation, FakeLink.new, source).tap { |child| child.deadline = Pando::Sys.now + 20 }
      end
    end

    # Stands in for the payload, in the monitor: options and hooks.
    Payload = Struct.new(:options, :hooks) do
      def run_hook(name, *arguments) = hooks&.run(name, *arguments)
      def find_folder; end
    end

    # Stands in for Memory::OomWatch: knows which processes the kernel has killed.
    Oom = Struct.new(:victims) do
      def victim?(child) = victims.include?(child)
    end

    # Stands in for the supervisor of the reactor: records that one was lost.
    class Reactors < Recorder
      def in_flight = {}
      def due = nil
    end

    # Stands in for the examiner: answers at once.
    Examiner = Struct.new(:meanwhile) do
      def examine(_pid)
        meanwhile&.call
        yield "in futex"
      end
    end

    attr_reader :roster, :generations, :rollout, :services, :reactors, :examiner, :shutdown, :child_events, :spawner,
                :given_up, :borne, :policy, :oom, :options, :throttles, :poison

    # @param measuring [Hash] see Generations
    def initialize(hooks: nil, measuring: {}, **options)
      @options = options = ClusterSupport.options(**options)
      @roster = ClusterSupport.roster
      @spawner = Spawner.new(@roster)
      @policy = Policy.new(nil, true)
      @shutdown = Pando::Cluster::Shutdown.new(@roster, options, ->(child) { @reports&.call(child) })
      @generations = Pando::Cluster::Generations.new(@roster, @spawner, @policy, method(:give_up), options,
                                                     throttles: @throttles = Pando::Cluster::RestartThrottles.new,
                                                     heard_at: ->(now) { @deaf_since || now }, **measuring)
      @rollout = Pando::Cluster::Rollout.new(@roster, @spawner, @generations, options, throttles: @throttles)
      @services = Pando::Cluster::ServiceSupervisor.new(@roster, @spawner, @generations, options,
                                                        throttles: @throttles)
      @reactors = Reactors.new
      @poison = Pando::Cluster::Poison.new(@roster, options)
      @examiner = Examiner.new
      @child_events = Pando::Cluster::ChildEvents.new(self, Payload.new(options, hooks), @oom = Oom.new([]))
    end

    # A child's report that the monitor has not read yet.
    attr_writer :reports

    # The same as the Monitor's.
    attr_reader :doors_closed

    # Stands for the listeners.
    def listeners = self
    def refuse = @doors_closed = true

    # As Pools#give_up in a server that keeps running once it has served.
    def give_up(*why)
      return (@given_up = why) unless generations.proven?

      (@borne ||= []) << why
      false
    end

    # Measures the children's memory, if anything does.
    attr_writer :gauge

    # The same as Monitor#dismiss.
    def dismiss(child)
      @gauge&.forget(child.pid)
      roster.dismiss(child)
    end

    # Idle workers that are stuck.
    def hung = @hung ||= []

    # The reactor is stuck, or no longer stuck.
    def deaf=(deaf)
      @deaf_since = (Pando::Sys.now if deaf)
    end

    # The same as Monitor#reconcile.
    def turn
      (roster.ready_workers - hung).each { |worker| worker.row.beat }
      generations.reconcile
      rollout.reconcile
      services.reconcile
      throttles.reconcile
      self
    end

    # Workers that keep their connections until the test ends them.
    def drained = @drained ||= []

    # Its successor serves, and it keeps its connections.
    # @return [Child] the worker
    def drain(worker)
      options.drain = 600.0
      rollout.ask_to_leave(worker, "test")
      options.drain = 0.0
      drained << worker
      turn
      starting.each { |child| ready(child) }
      worker
    end

    # A running cluster of one generation.
    def boot
      generations.begin_boot
      ready(upcoming_mold)
      settle
    end

    # @return [Child] ready, or only adopted
    def add_reactor(ready: true)
      roster.admit(:reactor, 0, 0, FakeLink.new, nil).tap do |reactor|
        reactor.adopt(FakePidfd.new(Spawner.pid))
        reactor.become_ready if ready
      end
    end

    def upcoming_mold = generations.upcoming.mold
    def current_mold = generations.current.mold
    def starting = roster.select(&:starting?)
    def leaving = roster.select(&:leaving?) - drained
    def worker_in(slot) = roster.in_slot(slot).find(&:ready?)
    def generations_of_workers = roster.ready_workers.sort_by(&:slot).map(&:generation)
    def slots = roster.ready_workers.map(&:slot).sort

    def adopt(child)
      return unless child.ordered?

      child.adopt(FakePidfd.new(Spawner.pid))
      child_events.child_adopted(child)
    end

    def ready(child)
      adopt(child)
      child.row.claim(0, child.slot, child.generation)
      child.become_ready
      child_events.child_ready(child)
      self
    end

    def serve(child, count = 1)
      count.times do
        child.row.start_job("GET", "/", nil, nil)
        child.row.finish_job
      end
    end

    def die(child, ending = ClusterSupport.killed)
      child_events.child_lost(child, ending)
      self
    end

    # All ordered children start, and all that were asked to leave exit.
    # @yield before each turn
    def settle(turns = 50)
      turns.times do
        turn
        yield if block_given?
        starting.each { |child| ready(child) }
        leaving.each { |child| die(child, ClusterSupport.ended) }
      end
      turn
    end
  end
end
