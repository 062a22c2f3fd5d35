# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/cluster/listening/listeners"
require "pando/cluster/open_files"
require "pando/cluster/options"
require "pando/cluster/restart_throttles"

module Pando
  module Cluster
    # Keeps the admin process alive, which shows metrics, status and events at the addresses of `admin`. That process
    # serves no requests, so its death costs nothing: another one starts at once, or later if it keeps failing. The
    # monitor owns the listeners, and clients wait there meanwhile.
    #
    # The admin process is a client of Control like any other. It has no need of the control socket: it makes a pair of
    # sockets for each command and sends one end over its link. The monitor never waits for it.
    #
    # The past that the dashboard shows survives that process in a file in memory. Owned by the monitor.
    class AdminSupervisor
      include Brief

      # Names of records in an upgrade's state.
      LISTENER = "admin_listener"
      PROCESS = "admin"
      HISTORY = "admin_history"
      # Seconds from its start to its readiness.
      START = 30.0
      # Seconds without a beat after which it is taken for stuck. It beats every few seconds.
      STANDSTILL = 15.0
      # Seconds that it may take to die of SIGKILL at the end of the server.
      DEATH = 1.0
      # Records that are read in one turn.
      AT_ONCE = 32
      # The longest waits before the next start. Whatever kills a process that works comes from outside. One that never
      # becomes ready will hardly do so the next time.
      LIMITS = { lost: { limit: 0.5, free: 3 }, failed: { limit: 30.0, free: 1 } }.freeze
      # Variables for Ruby that the monitor was started with, and that the admin process must not obey.
      UNSET = %w[RUBYOPT RUBYLIB RUBY_YJIT_ENABLE BUNDLE_GEMFILE].freeze
      BROKEN = "it broke the protocol"
      ADVICE = "everybody who can reach this address may read /metrics, /livez and /readyz; /status.json, /events " \
               "and all commands need the token, which travels unencrypted"

      # @param spec [Spec, nil] nil: there is to be no such process
      # @raise [BootError] an address cannot be listened on
      def self.open(spec, control, poller)
        new(control, poller).tap do |admin|
          admin.prepare(spec)
          admin.adopt
        end
      end

      def initialize(control, poller)
        @control = control
        @poller = poller
        @listeners = Listening::Listeners.new
        @throttles = LIMITS.transform_values { |terms| RestartThrottle.new({ role: :admin }, **terms) }
      end

      # Opens the listeners of another configuration, and does not use them yet.
      def prepare(spec)
        @next = spec
        @change = @listeners.prepare(spec ? spec.listen : [])
      rescue BootError => e
        raise BootError, "the admin address: #{e.message}"
      end

      # Uses what was prepared. The process is replaced if anything has changed for it.
      def adopt
        before = @listeners.to_a
        @listeners.adopt(@change)
        @listeners.forget(@listeners.leaving)
        tell_exposed(@change.fresh)
        changed = before != @listeners.to_a || @next != @spec
        @spec = @next
        @change = nil
        @unwanted = true if @process && changed # #reconcile kills it, in this turn
      end

      def give_up
        @listeners.give_up(@change) if @change
        @change = nil
      end

      # Reads what the process has sent, and reaps it. Called at each turn, before unknown dead processes are reaped.
      def hear
        return unless @process

        read
        ending = @process.reap and gone(ending)
      end

      # @return [Boolean] whether it was this one
      def reap(pid)
        return false unless @process&.pid == pid

        hear
        true
      end

      # Called at each turn of the monitor's loop, also while the server stops: a stop can be watched.
      def reconcile(now = Sys.now)
        @listeners.close unless @spec || @listeners.none?
        @throttles.each_value { |throttle| throttle.settle(now) }
        return watch(now) if @process

        start if @listeners.any? && @throttles.each_value.all? { |throttle| throttle.over?(now) }
      end

      def due
        return if @listeners.none?

        @process ? @deadline : @throttles.each_value.filter_map(&:due).max
      end

      # The whole server stood still, this process too.
      def postpone(seconds) = @deadline &&= @deadline + seconds

      # @return [Hash{Symbol => Object}, nil] for `pando status`
      def state
        return if @listeners.none?

        { pid: @process&.pid, state: { nil => "restarting", true => "ready", false => "starting" }[@process && @ready],
          listen: @listeners.names.join(",") }
      end

      def to_state(state)
        @listeners.to_state(state, LISTENER)
        state.add(PROCESS, pid: @process.pid, pidfd: state.keep(@process)) if @process
        state.add(HISTORY, file: state.keep(@history)) if @history
      end

      # The next image of the monitor starts its own.
      def from_state(state)
        kept = state.any(HISTORY)
        @history = IO.for_fd(state.take(kept.integer(:file)), "r+") if kept
        record = state.any(PROCESS) or return
        @process = Sys::Pidfd.new(record.integer(:pid), state.take(record.integer(:pidfd)))
        @poller.add(@process, [:admin, nil])
        @unwanted = true
      end

      # After an upgrade: the listeners are kept, also if the configuration has changed since. If it no longer asks for
      # an admin process, #reconcile closes them: until this image runs, they and their files are of the one before it.
      def take_up(state, spec)
        @listeners.take_up(state, spec ? spec.listen : [], LISTENER)
        @spec = spec
        self
      end

      # The server has stopped, and the process has been told of all that happened.
      def close
        @listeners.close
        @history&.close
        return unless @process

        @process.signal("KILL")
        @process.to_io.wait_readable(DEATH)
        @process.reap
        forget
      end

      private

      def tell_exposed(listeners)
        listeners.reject { |one| local?(one.local_address) }.each do |one|
          Events.emit("admin.exposed", listen: one.name, advice: ADVICE)
        end
      end

      def local?(address) = address.unix? || address.ipv4_loopback? || address.ipv6_loopback?

      def start
        @link, theirs = UNIXSocket.pair(:SEQPACKET)
        @began_at = Sys.now
        @deadline = @began_at + START
        @ready = @unwanted = false
        @history ||= IO.for_fd(Sys.memory_file("pando-history"), "r+")
        pid = Sys.spawn(@spec.command, environment, [theirs, @history, *@listeners], nil, OpenFiles.given)
        @process = Sys::Pidfd.new(pid)
        [@process, @link].each { |io| @poller.add(io, [:admin, nil]) }
      rescue SystemCallError => e
        refused(pid, e)
      ensure
        theirs&.close
      end

      def environment
        variables = { **ENV.to_h.except(*UNSET), **@spec.environment,
          "PANDO_MONITOR" => "#{Process.pid}:#{@listeners.count}" }
        variables.map { |name, text| "#{name}=#{text}" }
      end

      # The kernel gives no process or descriptor. A process that cannot be watched ends, and is reaped as an orphan.
      def refused(pid, error)
        Process.kill(:KILL, pid) if pid
        @process ? forget : @link&.close
        @throttles[:failed].fail(error.message, refused: true)
      end

      def read
        AT_ONCE.times do
          record = @link && Sys.receive_record(@link, Control::Line::LIMIT)
          break if record == false
          return hang_up unless record

          text, _sender, descriptors, stripped = record
          take(text || stripped, descriptors)
        end
      rescue SystemCallError
        hang_up
      end

      # @param descriptors [Array<Integer>] without those for which the monitor has no room
      def take(text, descriptors)
        word, = text && Control::Line.decode(text)
        case word
        when "ready" then ready
        when "beat" then nil
        when "client" then descriptors.each { |number| welcome(number) }
        else kill(BROKEN)
        end
        descriptors.each { |number| Sys.close_fd(number) } unless word == "client"
        @deadline = Sys.now + STANDSTILL if @ready && !@verdict
      end

      # One of its own clients.
      def welcome(number)
        socket = Sys.take_socket(number) or return kill(BROKEN)
        @control.welcome(socket)
      end

      def ready
        @ready = true
        Events.emit("admin.ready", pid: @process.pid, listen: @listeners.names.join(","),
                                   seconds: (Sys.now - @began_at).round(3))
      end

      def hang_up
        return unless @link

        @poller.remove(@link)
        @link.close
        @link = nil
        @deadline = [@deadline, Sys.now + DEATH].min
      end

      def watch(now)
        return @process.signal("KILL") if @unwanted
        return if now < @deadline

        kill(@ready ? "it stood still" : "it was not ready within #{START.round} s")
      end

      def kill(reason)
        @verdict ||= reason
        @deadline = Sys.now + DEATH
        @process.signal("KILL")
      end

      def gone(ending)
        pid = @process.pid
        forget
        return if @unwanted

        reason = [@verdict, ending.to_s].compact.join(": ")
        Events.emit(@ready ? "admin.lost" : "admin.failed", pid: pid, reason: reason)
        @throttles[@ready ? :lost : :failed].fail(reason)
      ensure
        @verdict = nil
      end

      def forget
        [@process, @link].compact.each do |io|
          @poller.remove(io)
          io.close
        end
        @process = @link = nil
      end
    end
  end
end
