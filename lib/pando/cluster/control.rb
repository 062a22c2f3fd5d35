# frozen_string_literal: true

require "pando/cluster/control/commands"
require "pando/cluster/control/session"
require "pando/cluster/options"
require "pando/cluster/listening/listeners"
require "pando/cluster/listening/listener_socket"

module Pando
  module Cluster
    # The UNIX socket at which `pando status`, `pando refork` and their like ask the monitor. It serves only the
    # server's own user and root. A client sends one line, receives a record for each event, and in the end `ok` or
    # `failed`. Owned by the monitor.
    class Control
      include Brief

      # Clients at a time; a new one replaces the oldest.
      SESSIONS = 32
      # Those of one service at a time, likewise.
      SESSIONS_OF_SERVICE = 4
      # Seconds without accepting after the kernel had no descriptor for a client.
      PAUSE = 1.0
      # For the user, when there is no control socket.
      ADVICE = "pando status cannot ask this server: write control \"PATH\" into its config file, with a path in a " \
               "folder that it may write to and that no other server uses. If the file is not config/pando.rb, name " \
               "it in each command, for example pando status -c config/swarm.rb"

      def self.open(spec, cluster, poller)
        new(cluster, poller).tap do |control|
          control.prepare(spec)
          control.adopt
        end
      end

      def initialize(cluster, poller)
        @poller = poller
        @listeners = Listening::Listeners.new
        @recent = RecentEvents.new
        @commands = Commands.new(cluster, @recent)
        @sessions = []
        @subscription = Events.subscribe { |event| tell(event) }
      end

      # Opens the socket of another configuration, and does not use it yet.
      # @raise [BootError] the socket is required, and cannot be opened
      def prepare(spec)
        prepare_default(spec) if spec && !spec.required
        @change = @listeners.prepare([spec].compact)
      rescue BootError => e
        raise if spec.required

        Events.emit("control.unavailable", reason: e.message, advice: ADVICE)
        @change = @listeners.prepare([])
      end

      # Uses the socket that was prepared. Sessions of the old one go on.
      def adopt
        before = listener
        @listeners.adopt(@change)
        @change = nil
        return if listener.equal?(before)

        unwatch(before) if before
        @listeners.forget(@listeners.leaving)
        watch
      end

      def give_up
        @listeners.give_up(@change) if @change
        @change = nil
      end

      # A client connects (:newcomer) or has sent something.
      def hear(session)
        return admit if session == :newcomer
        return if session.closed?

        line = session.command
        begin_task(session, line) if line
        forget_closed
      end

      # A client has come another way than by the socket (AdminSupervisor, Service), with its command.
      # @param service [Child, nil] the service that it comes from
      def welcome(socket, service = nil)
        others = @sessions.select { |session| service && session.service.equal?(service) }
        others.first.close if others.size >= SESSIONS_OF_SERVICE
        hear(add(socket, service))
      rescue SystemCallError
        socket.close
      end

      def proceed
        resume
        @sessions.each do |session|
          guard(session) do
            session.task&.check
            conclude(session)
            session.tell_obstacle
          end
          session.proceed unless session.closed?
        end
        forget_closed
      end

      # Before an upgrade: answers the clients whose outcome the next monitor could not tell.
      def fail_unfinished
        @sessions.each(&:fail_unfinished)
        forget_closed
      end

      def to_state(state)
        @listeners.to_state(state, "control")
        @sessions.each { |session| session.to_state(state) }
      end

      # After an upgrade. A setting that has changed since does not move the socket.
      def take_up(state, spec)
        @listeners.take_up(state, [spec].compact, "control")
        watch
        self
      end

      # Its clients, which may wait for the end of the upgrade.
      def from_state(state)
        @sessions = state.all("session").map { |record| Session.taken_up(record, state, @poller, @commands) }
      end

      # The socket goes first: a client that reads `ok` may start another server here at once.
      def close
        unwatch(listener) if listener
        @listeners.close
        proceed
        Events.unsubscribe(@subscription)
        @sessions.each(&:close)
      end

      private

      # @return [Listening::OwnListener, nil] nil: there is no control socket
      def listener = @listeners.first

      def watch
        @poller.add(listener.socket, %i[control newcomer]) if listener
      end

      def unwatch(listener)
        @poller.remove(listener.socket) unless @paused_until
        @paused_until = nil
      end

      # The folder of the default path is made. That of a path in the configuration is the user's to make, because a
      # typing error would make another one.
      # @raise [BootError] there is no such folder, or another server uses the path
      def prepare_default(spec)
        return if listener&.for?(spec)

        make_folder(File.dirname(spec.path))
        pid = Listening::SocketFile.holder(spec.path) or return

        raise BootError, "another Pando of this folder runs (pid #{pid}) and has #{spec.path}"
      end

      def make_folder(folder)
        Dir.mkdir(folder) unless File.directory?(folder)
      rescue Errno::EEXIST
        nil # another server has just made it, or it is a file: then the socket cannot be opened
      rescue SystemCallError => e
        raise BootError, "there is no folder #{folder}, and it cannot be made: #{e.message}"
      end

      def admit
        socket, = listener.socket.accept_nonblock(exception: false)
        return if socket == :wait_readable
        return socket.close unless [0, Process.euid].include?(socket.getpeereid.first)

        add(socket)
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::ENOBUFS => e
        socket.close if socket.respond_to?(:close)
        pause(e)
      rescue SystemCallError
        socket.close if socket.respond_to?(:close)
      end

      def add(socket, service = nil)
        @sessions.shift.close if @sessions.size >= SESSIONS
        @sessions << (session = Session.new(socket, @poller, service))
        session
      end

      # A client in the queue would wake the monitor up again at once.
      def pause(error)
        @poller.remove(listener.socket)
        @paused_until = Sys.now + PAUSE
        Events.emit("control.failed", reason: "no client can be accepted: #{error.message}")
      end

      def resume
        return unless @paused_until && Sys.now >= @paused_until

        watch
        @paused_until = nil
      rescue SystemCallError
        @paused_until = Sys.now + PAUSE
      end

      def begin_task(session, line)
        guard(session) do
          session.task = task = @commands.call(line, session)
          next unless task

          task.start
          conclude(session)
        end
      end

      # A fault of ours must not end the cluster.
      def guard(session)
        yield
      rescue Commands::Refused => e
        session.finish("failed", reason: e.message)
      rescue StandardError => e
        Events.emit("control.failed", reason: "#{e.message} (#{e.class})", backtrace: e.backtrace)
        session.finish("failed", reason: "the server could not do it: #{e.message}")
      end

      def tell(event)
        @recent.add(event)
        @sessions.each do |session|
          next unless session.task

          session.say("event", name: event.name, **event.payload.except(:backtrace, :name)) unless session.task.quiet?
          session.task.observe(event)
        end
      end

      def conclude(session)
        task = session.task
        return unless task&.over?

        task.failure ? session.finish("failed", reason: task.failure) : session.finish("ok", text: task.achieved)
      end

      def forget_closed = @sessions.reject!(&:closed?)

      # The monitor's last events, as records of the protocol. A client that follows them and reads slowly, or a service
      # that is being replaced, goes on here where it was. Owned by Control, in the monitor.
      class RecentEvents
        KEPT = 256

        # `pairs` are those of the record.
        Entry = Struct.new(:number, :name, :pairs)

        # @return [Integer] the number of the last event
        attr_reader :last

        # Numbers go on from one image of the monitor to the next: no event comes each microsecond.
        def initialize
          @entries = []
          @began = @last = (Time.now.to_f * 1_000_000).to_i
        end

        def add(event)
          @last += 1
          payload = event.payload.except(:backtrace, :event, :time, :number)
          @entries << Entry.new(@last, event.name, { event: event.name, time: format("%.3f", event.time.to_f),
                                                     **payload.transform_values { |value| text(value) } })
          @entries.shift if @entries.size > KEPT
        end

        # A number from the future is one of a former image of the monitor: the clock has been set back since.
        # @param number [Integer] that a client knows
        # @return [Integer] after which its events come
        def place_of(number) = number > @last ? @began : number

        # @return [Entry, nil] the first event that is kept and comes after the one with this number; nil: none
        def after(number)
          first = @entries.first&.number or return
          @entries[[number + 1 - first, 0].max]
        end

        # @return [Integer] how many came between the two and are no longer kept; what a former image of the monitor has
        #   emitted does not count
        def missed(number, entry) = [entry.number - [number, @began].max - 1, 0].max

        private

        # As the log writes it.
        def text(value)
          case value
          when Float then value.round(6)
          when Array then value.join(",")
          when Exception then "#{value.class}: #{value.message}"
          else value
          end
        end
      end
    end
  end
end
