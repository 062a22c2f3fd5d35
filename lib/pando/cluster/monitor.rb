# frozen_string_literal: true

require "pando/cluster"
require "pando/cluster/addresses"
require "pando/cluster/caretaker"
require "pando/cluster/control"
require "pando/cluster/dampers"
require "pando/cluster/deadlines"
require "pando/cluster/descriptor_store"
require "pando/cluster/direct_mode"
require "pando/cluster/dismissals"
require "pando/cluster/drain"
require "pando/cluster/examiner"
require "pando/cluster/generations"
require "pando/cluster/inbox"
require "pando/cluster/lanes"
require "pando/cluster/listeners"
require "pando/cluster/memory_keeper"
require "pando/cluster/reactor_keeper"
require "pando/cluster/reaper"
require "pando/cluster/reload"
require "pando/cluster/rollout"
require "pando/cluster/roster"
require "pando/cluster/service_keeper"
require "pando/cluster/shutdown"
require "pando/cluster/signals"
require "pando/cluster/sizing"
require "pando/cluster/spawner"
require "pando/cluster/systemd"
require "pando/cluster/tally"
require "pando/cluster/terminal"

module Pando
  module Cluster
    # The first process and the last one: owns listeners, links and the
    # scoreboard, starts and watches all others, and never loads the
    # application. One thread, one loop: wait, hear, bury, enforce, reconcile.
    class Monitor
      TITLE = "pando monitor"
      # Seconds that it waits when the kernel has no memory or descriptor for it.
      STARVED = 0.25

      attr_reader :listeners, :roster, :generations, :rollout, :services, :reactors, :shutdown, :reload,
                  :inbox, :examiner, :drain, :dismissals, :dampers, :sizing, :tally

      # @param payload [Payload] for its options and hooks; its application is never loaded here
      # @param specs [Array] see Listeners.open
      # @param policy [#threshold, #manual?, #choose] when to refork and from whom
      # @param command [Array<String>] what becomes the mold of a cold boot
      # @param inherited [Inherited] what a service manager has opened for us
      def initialize(payload, specs, policy, command, inherited: Inherited.none)
        @payload = payload
        @specs = specs
        @policy = policy
        @command = command
        @inherited = inherited
      end

      # Serves until told to stop.
      # @return [Integer] exit status: 0 after a wanted stop, 1 when nothing could be served
      # @raise [BootError] an address cannot be listened on
      def run
        set_up
        announce
        generations.begin_boot
        turn until shutdown.complete?
        tear_down
      ensure
        reload&.abandon
        @control&.close
        @listeners&.close
      end

      # @api private
      def refuse_connections = listeners.refuse

      # @return [Float] seconds since the start
      def age = Sys.now - @began_at

      # @return [Boolean] whether the server stops, now or after its `drain_delay`
      def ending? = shutdown.begun? || drain.stop?

      # @api private
      def dismiss(child)
        @poller.remove(child.link) unless child.link.closed?
        @poller.remove(child.pidfd) if child.pidfd
        roster.dismiss(child)
      end

      private

      def set_up
        @began_at = Sys.now
        Sys.subreaper!
        store = DescriptorStore.from(ENV)
        @systemd = Systemd.from(ENV)
        Process.setproctitle(TITLE)
        @tally = Tally.new
        @listeners = Listeners.open(@specs, @inherited, store)
        @poller = Sys::Poller.new
        @signals = Signals.new
        @terminal = Terminal.new
        @poller.add(@signals, [:signal, nil])
        @signals.trap_all
        @control = Control.open(@payload.options.control, self, @poller)
        build
      end

      def build
        options = @payload.options
        oom = OomWatch.new
        @dampers = Dampers.new
        caretaker = Caretaker.new(self, @payload, oom)
        @roster = Roster.new
        @shutdown = Shutdown.new(roster, options, ->(child) { @inbox.read(child) })
        @spawner = build_spawner(@payload.reactor, oom)
        @generations = Generations.new(roster, @spawner, @policy, shutdown.method(:fail), options, dampers: dampers)
        @rollout = Rollout.new(roster, @spawner, generations, options, dampers: dampers)
        build_watch(caretaker)
      end

      # @param setup [Object, nil] see Payload#reactor
      def build_spawner(setup, oom)
        lanes = setup ? Lanes.new(setup, oom) : DirectMode.new(roster, listeners)
        spawner = Spawner.new(roster, @poller, listeners, @payload.options, @command, lanes)
        @reactors = setup ? ReactorKeeper.new(roster, spawner, lanes, listeners, setup, dampers: dampers) : lanes
        spawner
      end

      def build_watch(caretaker)
        build_ways_out
        @inbox = Inbox.new(roster, @poller, caretaker)
        @reaper = Reaper.new(roster, @inbox, caretaker)
        @examiner = Examiner.new(@poller, @payload.examination_command)
        @deadlines = Deadlines.new(roster, caretaker, @payload.options)
        @services = ServiceKeeper.new(roster, @spawner, generations, @payload.options, dampers: dampers)
        build_memory(@payload.options)
        addresses = Addresses.new(listeners, @control, reactors)
        @reload = Reload.new(generations, @payload, @poller, addresses, method(:renew))
      end

      def build_ways_out
        @drain = Drain.new(roster, shutdown, @payload.options)
        @dismissals = Dismissals.new(rollout, generations, @payload.options)
      end

      def build_memory(options)
        gauge = MemoryGauge.new
        @memory = MemoryKeeper.new(roster, options, rollout, generations.method(:worker_wasted), gauge: gauge)
        @sizing = Sizing.new(roster, rollout, options, gauge)
      end

      def announce
        listeners.each { |one| Events.emit("listener.opened", **one.identity) }
        Events.emit("monitor.ready", pid: Process.pid, listen: listeners.names.join(","), workers: rollout.size)
        @payload.run_hook(:after_monitor_ready)
      rescue HookError => e
        Events.emit("hook.failed", hook: :after_monitor_ready, reason: e.message)
      end

      # What the kernel refuses us in the midst of it is tried again with the next turn, a little later: we end
      # for nothing that passes.
      def turn
        take_turn
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, NoMemoryError => e
        Events.emit("monitor.starved", reason: "#{e.message} (#{e.backtrace&.first})")
        sleep(STARVED)
      end

      def take_turn
        ready = @poller.wait([due - Sys.now, 0].max)
        hear(ready)
        @deadlines.enforce
        shutdown.begun? ? shutdown.proceed : reconcile
        reactors.reconcile(shutdown.begun?)
        drain.proceed
        @control.proceed
        @systemd.reconcile { status_line }
      end

      def status_line
        "#{roster.ready_workers.size} of #{rollout.size} workers serve#{", draining" if drain.begun?}"
      end

      def due
        waiting = [@deadlines, @memory, @systemd, generations, rollout, reactors, examiner, drain, dismissals, dampers,
                   sizing, reload]
        waiting.filter_map(&:due).min
      end

      # Links before pidfds: a dead process's last words come first. Signals before
      # pidfds: what shall end us may have been sent to the children as well, and
      # then their death is no failure. One may be newer than the list of the ready.
      def hear(ready)
        signals = @signals.take.uniq
        children(ready, :link).each { |child| @inbox.read(child) }
        (signals - ["CHLD"]).each { |name| obey(name) }
        children(ready, :exit).each { |child| @reaper.bury(child) }
        children(ready, :control).each { |session| @control.hear(session) }
        examiner.proceed
        reload.attend
        @reaper.bury_strangers if signals.include?("CHLD")
      end

      def children(ready, what) = ready.filter_map { |subject, child| child if subject == what }

      def reconcile
        reload.reconcile # first: a mold that is booted anew is to be of the release that serves
        generations.reconcile
        rollout.reconcile
        services.reconcile
        dismissals.reconcile unless ending?
        @memory.reconcile
        sizing.reconcile
        dampers.reconcile
      end

      def obey(signal)
        case signal
        when "TERM", "INT", "QUIT" then stop(signal)
        when "HUP" then reload.request("HUP") unless ending? || @terminal.lost?
        when "USR2" then generations.refork("USR2") unless ending?
        when "TTIN" then rollout.resize(rollout.size + 1)
        when "TTOU" then rollout.resize(rollout.size - 1)
        end
      end

      # Another release serves: its settings are ours from now on.
      def renew(renewal)
        @payload.adopt(renewal)
        @spawner.command = renewal.command
        generations.policy = renewal.policy
        rollout.resize(renewal.workers) if renewal.workers
      end

      def stop(signal)
        return shutdown.quickly(signal) if signal == "INT" && !shutdown.begun?
        return drain.stop(signal) unless ending?
        return if signal == "QUIT" # nobody is in a hurry

        shutdown.begun? ? shutdown.at_once(signal) : drain.stop(signal)
      end

      def tear_down
        @signals.release
        Events.emit("monitor.stopped", pid: Process.pid, status: shutdown.status)
        @systemd.close
        shutdown.tell_failure
        shutdown.status
      end
    end
  end
end
