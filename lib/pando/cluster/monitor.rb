# frozen_string_literal: true

require "pando/cluster"
require "pando/cluster/admin_supervisor"
require "pando/cluster/control"
require "pando/cluster/drain"
require "pando/cluster/helper_process"
require "pando/cluster/inbox"
require "pando/cluster/listening/listeners"
require "pando/cluster/memory/gauge"
require "pando/cluster/memory/oom_watch"
require "pando/cluster/memory/shortage"
require "pando/cluster/open_files"
require "pando/cluster/pid_file"
require "pando/cluster/pools"
require "pando/cluster/quiet"
require "pando/cluster/reaper"
require "pando/cluster/reload"
require "pando/cluster/restart_file"
require "pando/cluster/roster"
require "pando/cluster/shutdown"
require "pando/cluster/signals"
require "pando/cluster/systemd"
require "pando/cluster/tally"
require "pando/cluster/start"
require "pando/cluster/upgrade"

module Pando
  module Cluster
    # The first process of a server and the last one. It owns listeners, links and the scoreboard, starts and watches
    # all other processes, and never loads the application. It has one thread and one loop (#take_turn).
    class Monitor
      include Brief
      extend Forwardable

      TITLE = "pando monitor"
      # Seconds that it waits when the kernel refuses memory or descriptors.
      STARVED = 0.25
      # Seconds that the reader of stderr has at the end.
      LOG_PATIENCE = 0.5

      attr_reader :listeners, :roster, :pools, :shutdown, :reload, :inbox, :examiner, :drain, :tally, :reaper, :systemd,
                  :control, :admin, :upgrade, :quiet, :began_at, :payload, :poller, :command, :oom, :gauge, :shortage,
                  :reactor_setup, :restart_file

      # Those of the first pool, which is the only one of most servers.
      def_delegators :first_pool, :generations, :rollout, :reactors, :lanes

      # @param payload [Server::Payload] for its options, hooks and companions; its application is never loaded here
      # @param specs [Array] see Listening::Listeners.open
      # @param policy [#threshold, #manual?, #choose] when to refork, and from which worker
      # @param command [ColdBootCommand] that becomes the mold
      def initialize(payload, specs, policy, command, start = Start.new)
        @payload = payload
        @specs = specs
        @policy = policy
        @command = command
        @start = start
        @image = Upgrade::ProcessImage.current
      end

      # Builds all parts and begins to boot.
      def prepare
        set_up
        @pid_file.claim if @start.fresh? # not before: if another server has the addresses, its file must stay
        @start.begin(self)
        self
      rescue BootError
        close
        raise
      end

      # Serves until told to stop.
      # @return [Integer] exit status: 0 after a wanted stop, 1 if it could not serve
      def run
        run_ready_hook
        until shutdown.complete?
          turn
          upgrade.proceed
        end
        tear_down
      ensure
        close
      end

      def age = Sys.now - @began_at

      # @return [Boolean] whether every worker of every pool is ready, and the reactor if there is one
      def complete? = pools.complete? && !reactors.heard_at(Sys.now).nil?

      # Asked while the pools are being built.
      def several_pools? = @companions.any?

      # All workers that serve clients: their pools come first.
      # @return [Roster::Selection]
      def clients
        serving = [@payload, *@companions.map(&:payload)].count { |payload| !payload.options.jobs }
        several_pools? ? roster.of(0...serving) : roster
      end

      # @return [Boolean] whether the server stops, now or after its `drain_delay`
      def ending? = shutdown.begun? || drain.stop?

      def dismiss(child)
        @poller.remove(child.link) unless child.link.closed?
        @poller.remove(child.pidfd) if child.pidfd
        tally.retire(child)
        gauge.forget(child.pid)
        roster.dismiss(child)
      end

      private

      def close
        reload&.abandon
        @listeners&.close
        @control&.close
        @admin&.close
        @pid_file&.release
      end

      def set_up
        @tally = Tally.new
        @companions = @payload.companions
        @signals = Signals.new(quiet: quieted_by_tstp?)
        @start.take_charge(@signals)
        @began_at = @start.began_at
        OpenFiles.raise_limit(@start.open_files)
        @pid_file = pid_file
        @restart_file = RestartFile.new(@payload.options)
        @listeners = @start.listeners(@specs)
        @systemd = @start.systemd
        @turns = TurnWatch.new
        @poller = Sys::Poller.new
        @poller.add(@signals, [:signal, nil])
        build_contacts
        build
      end

      # After an upgrade the file is this process's already.
      def pid_file
        file = PidFile.new((@payload.options.pidfile unless @start.rehearsal?))
        @start.fresh? ? file.tap(&:refuse_second_server) : file.claim_if_possible
      end

      def build_contacts
        @control = @start.control(self, @payload.options.control, @poller)
        @admin = @start.admin(@control, @payload.options.admin, @poller)
      end

      def build
        @roster = @start.roster
        @shutdown = Shutdown.new(roster, @payload.options, method(:read),
                                 options_of: ->(child) { pools.of(child).options })
        build_memory
        @pools = build_pools
        @drain = Drain.new(pools.first.roster, shutdown, @payload.options)
        @orders = SignalOrders.new(self, jobs: @payload.options.jobs)
        @quiet = Quiet.new(pools)
        build_watch
        build_changes
      end

      def build_memory
        @oom = Memory::OomWatch.new
        @gauge = Memory::Gauge.new.tap(&:probe)
        @shortage = Memory::Shortage.new(@payload.options, @gauge)
      end

      def build_pools
        plans = [Pools::Plan.new(payload: @payload, policy: @policy), *@companions]
        @reactor_setup = @start.reactor(@payload)
        first = nil
        Pools.new(plans, roster, shutdown) do |plan, roster, number|
          Pool.new(self, plan, roster, number, first).tap { |pool| first ||= pool }
        end
      end

      def build_watch
        @inbox = Inbox.new(roster, @poller, pools, @control)
        @reaper = Reaper.new(roster, @inbox, pools) { |pid| @admin.reap(pid) }
        @examiner = Examiner.new(@poller, @payload.examination_command)
        @systemd.ready_when { pools.serve? }
      end

      def build_changes
        addresses = Reload::Addresses.new(listeners, @control, @admin, reactors)
        @reload = Reload.new(pools, @payload, @poller, addresses, method(:renew))
        @upgrade = Upgrade.new(self, @payload, @poller, @signals, @image)
      end

      def renew(renewal)
        pools.renew(renewal)
        @pid_file.restore
      end

      # TSTP quiets job nodes. At a terminal, ^Z suspends a server that serves requests, like any process.
      def quieted_by_tstp?
        return true if @payload.options.jobs

        @companions.any? { |plan| plan.payload.options.jobs } && !Terminal.new.had?
      end

      def run_ready_hook
        @payload.run_hook(:after_monitor_ready)
      rescue HookError => e
        Events.emit("hook.failed", hook: :after_monitor_ready, reason: e.message)
      end

      # If the kernel refuses memory or descriptors, the next turn tries again: nothing that passes ends the monitor.
      def turn
        take_turn
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, NoMemoryError => e
        Events.emit("monitor.starved", reason: "#{e.message} (#{e.backtrace&.first})")
        sleep(STARVED)
      end

      def take_turn
        Events.proceed
        hear(wait)
        oom.look
        pools.enforce(@turns.now) # no later: if it has stood still since, the next turn notices
        shutdown.begun? ? shutdown.proceed : reconcile
        reactors.reconcile(shutdown.begun?)
        drain.proceed
        @control.proceed
        @admin.reconcile
        @systemd.reconcile { status_line }
      end

      def wait
        asked = [due - Sys.now, 0].max
        @poller.wait(asked).tap do
          seconds = @turns.turned(asked)
          [pools, @admin].each { |part| part.postpone(seconds) } if seconds.positive?
        end
      end

      def status_line = "#{pools.summary}#{", draining" if drain.begun?}"

      def due
        always = [pools.deadline, *[@systemd, reactors, drain, @orders, @admin].filter_map(&:due)].min
        return always if shutdown.begun? # no other part has work then

        [always, *[pools, examiner, reload, upgrade, @restart_file].filter_map(&:due)].min
      end

      # Links come before pidfds: the last reports of a dead process come first. Signals come before pidfds, also those
      # since the wait: a signal to stop may have been sent to the children as well, and then their death is no failure.
      def hear(ready)
        signals = @signals.take.uniq
        children(ready, :link).each { |child| read(child) }
        obey(signals)
        children(ready, :exit).each { |child| @reaper.reap(child) }
        children(ready, :control).each { |session| @control.hear(session) }
        [@admin, upgrade].each(&:hear)
        examiner.proceed
        reload.attend
        @reaper.reap_orphans if signals.delete("CHLD")
      ensure
        @signals.remember(signals.to_a) # if the kernel has refused memory: the next turn obeys them
      end

      def obey(signals)
        (signals - ["CHLD"]).each { |name| @orders.obey(signals.delete(name)) }
        @orders.proceed
      end

      def read(child) = pools.about(pools.of(child)) { @inbox.read(child) }

      def children(ready, what) = ready.filter_map { |subject, child| child if subject == what }

      def reconcile
        return if upgrade.holds?

        @restart_file.proceed { |path| reload.request("#{path} was touched") }
        reload.reconcile # first, so that a mold that boots now is of the release that serves
        pools.reconcile(ending?)
        quiet.reconcile(ending?)
        @start.proceed(self)
      end

      def first_pool = pools.first

      def tear_down
        @signals.release
        Events.emit("monitor.stopped", pid: Process.pid, status: shutdown.status)
        @systemd.close
        Events.proceed(LOG_PATIENCE)
        shutdown.print_failure(LOG_PATIENCE)
        shutdown.status
      end
    end

    # Notices turns of the monitor's loop that take too long, since the monitor hears no child meanwhile. If such a turn
    # took hardly any processor time, the whole server is taken to have stood still: its container was frozen, or job
    # control had stopped it. That time counts for no timeout. Owned by the monitor.
    class TurnWatch
      # Seconds that a turn may take, beyond its wait.
      LIMIT = 1.0

      # @return [Float, nil] when the present turn's wait ended
      attr_reader :now

      # @param processor [#call] gives the CPU seconds of this process
      def initialize(processor: -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) })
        @processor = processor
      end

      # Called once a turn, after the wait.
      # @param asked [Float] the most seconds that it was to wait
      # @return [Float] seconds in which the whole server stood still; 0.0: none
      def turned(asked)
        now = Sys.now
        processor = @processor.call
        took = @now ? now - @now - asked : 0.0
        used = @used ? processor - @used : 0.0
        @now = now
        @used = processor
        took > LIMIT ? stalled(took, used) : 0.0
      end

      private

      def stalled(took, used)
        Events.emit("monitor.stalled", seconds: took.round(3), processor: used.round(3))
        used < took / 2 ? took - used : 0.0
      end
    end
  end
end
