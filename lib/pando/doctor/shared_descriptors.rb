# frozen_string_literal: true

require "pando/doctor/checks"
require "pando/native"
require "pando/sys"
require "pando/sys/memory"
require "pando/sys/process_stat"

module Pando
  module Doctor
    # Finds the descriptors that a mold still shares with its workers once the workers have served: a library that
    # reopens its connection after a fork has done so by then. Used by the examination while the processes live.
    class SharedDescriptors
      # `open` is the mold's ProcessInfo::Descriptor, `io` what the mold's Ruby reports of it (nil: it belongs to C
      # code), `holders` the Actors that have it open, `uses` the report of ForkSafety::Use from each worker that used
      # it.
      Shared = Struct.new(:open, :io, :holders, :uses, :socket, :helper, keyword_init: true) do
        # At least two live processes: two workers, or one worker and the process that had used it before the fork.
        def used_by_two? = uses.size >= 2 || uses.any? { |one| one[:before] }

        # @return [String, nil] the line that used it in a worker
        def use_site = uses.filter_map { |one| one[:site] }.first

        # Reads by C code from a pipe or a UNIX socket leave no trace.
        def use_visible? = !io.nil? || !open.link.match?(/\A(?:socket|pipe):/) || !!socket&.tcp?

        # Without the inode, which differs from run to run.
        def link = open.link.sub(/\[\d+\]/, "")

        # @return [String, nil] the line that opened it; for C code, as the second, traced run saw it
        def location(evidence)
          return io[:location] if io&.fetch(:location)

          alike = evidence.origins.select { |one| one[:origin] == "descriptor" && one[:link] == link }
          (alike.find { |one| one[:number] == open.number } || alike.first)&.fetch(:location)
        end
      end

      STDIO = [0, 1, 2].freeze

      def initialize(evidence, generation)
        @evidence = evidence
        @generation = generation
        @mold = generation.processes[generation.mold]
        @socket_tables = [SocketTable.new(@mold.pid), generation.sockets] if @mold
      end

      def all = candidates.filter_map { |open| shared(open) }

      private

      # What the mold had when it forked, except Pando's own, those that `keep_io` names, and the terminal.
      def candidates
        unless @mold && snapshot
          @evidence.could_not("shared descriptors", "the mold of generation #{@generation.number} did not report")
          return []
        end

        spared = snapshot[:own] | snapshot[:kept] | STDIO
        @mold.descriptors.values.reject do |open|
          spared.include?(open.number) || @evidence.ours?(io(open.number)&.fetch(:location)) || terminal?(open)
        end
      end

      def shared(open)
        workers = @generation.processes.except(@generation.mold)
        holders = workers.select { |_, worker| @mold.shares?(open.number, worker) }.keys
        return if holders.empty?

        Shared.new(open: open, io: io(open.number), holders: [@generation.mold, *holders], uses: uses(open),
                   socket: socket(open), helper: helper(open))
      end

      def snapshot
        @snapshot ||= @evidence.snapshots(:fork).find { |one| one[:pid] == @mold.pid && one[:role] == "mold" }
      end

      def io(number) = snapshot[:ios].find { |one| one[:number] == number }
      def uses(open) = @generation.uses.values.filter_map { |used| used.find { |one| one[:number] == open.number } }

      # As it is now, or else as it was before the workers served: the peer may have hung up because they shared it.
      def socket(open)
        return unless open.link.start_with?("socket:")

        seen = @socket_tables.filter_map { |table| table[open.inode] }
        seen.find { |one| one.kind != :idle } || seen.first
      end

      # A copy of a standard stream ($stdout.dup) is shared on purpose.
      def terminal?(open)
        pid = @mold.pid
        STDIO.any? do |number|
          @mold.descriptors[number]&.link == open.link && Sys.open_file_shared?(pid, number, pid, open.number)
        end
      rescue SystemCallError
        false
      end

      # @return [String, nil] the name of a process outside the cluster that holds an end of this pipe too
      def helper(open)
        return unless open.link.start_with?("pipe:")

        ours = @evidence.facts.filter_map { |fact| fact[:pid] }
        group_links.find { |pid, links| !ours.include?(pid) && links.include?(open.link) }&.then do |pid, _|
          File.read("/proc/#{pid}/comm").chomp
        end
      rescue SystemCallError
        nil
      end

      # @return [Hash{Integer => Array<String>}] the descriptors' links of each process of the stage's process group
      def group_links
        @group_links ||= begin
          group = Sys::ProcessStat.read(@mold.pid)&.group
          Dir.children("/proc").grep(/\A\d+\z/).filter_map do |pid|
            next if Sys::ProcessStat.read(pid)&.group != group

            [pid.to_i, Dir.children("/proc/#{pid}/fd").map { |fd| File.readlink("/proc/#{pid}/fd/#{fd}") }]
          rescue SystemCallError
            nil
          end.to_h
        end
      end
    end

    # What /proc shows of a process from outside: its descriptors, threads and memory. Runs in the command's process.
    class ProcessInfo
      # An open descriptor: its number, the target of its link in /proc, and its fdinfo.
      Descriptor = Struct.new(:number, :link, :facts) do
        def flags = facts["flags"].to_s.to_i(8)
        def append? = flags.anybits?(File::APPEND)
        # A POSIX lock does not count: it belongs to its process, and a fork does not inherit it.
        def locked? = facts["lock"].to_s.match?(/FLOCK|OFDLCK/)
        def inode = link[/\[(\d+)\]\z/, 1]
        def regular? = link.start_with?("/") && !link.start_with?("/dev/") && !link.start_with?("/proc/")
      end

      attr_reader :pid

      # @return [ProcessInfo, nil] nil if the process is gone
      def self.of(pid)
        new(pid).tap(&:descriptors)
      rescue Errno::ENOENT, Errno::ESRCH, Errno::EACCES
        nil
      end

      def initialize(pid)
        @pid = pid
      end

      def descriptors
        @descriptors ||= Dir.children("/proc/#{pid}/fd").filter_map { |number| descriptor(number) }.to_h
      end

      # @return [Boolean] whether the other process holds the same open file under the same number
      def shares?(number, other)
        mine = descriptors[number]
        theirs = other.descriptors[number]
        return false unless mine && theirs && mine.link == theirs.link

        Sys.open_file_shared?(pid, number, other.pid, number)
      rescue Errno::ENOSYS, Errno::EPERM
        mine.facts.slice("flags", "pos") == theirs.facts.slice("flags", "pos")
      rescue SystemCallError
        false
      end

      # @return [Hash{Symbol => Integer}] bytes: rss, pss, uss (private to this process); empty if the process is
      #   gone
      def memory
        usage = Sys::Memory.usage(pid)
        usage ? { rss: usage.rss, pss: usage.pss, uss: usage.private } : {}
      end

      private

      def descriptor(number)
        link = File.readlink("/proc/#{pid}/fd/#{number}")
        facts = File.read("/proc/#{pid}/fdinfo/#{number}").scan(/^([\w -]+?):\s*(.*)$/).to_h
        [number.to_i, Descriptor.new(number.to_i, link, facts)]
      rescue Errno::ENOENT
        nil
      end
    end

    # The kernel's tables of sockets (/proc/PID/net) at one moment, by inode. A connection that its peer has reset is no
    # longer in them.
    class SocketTable
      # `kind` is :stream, :listener, :datagram or :idle; `peer` is the other end's address, for a human.
      Socket = Struct.new(:kind, :peer, :family) do
        def tcp? = family == :tcp
      end

      ESTABLISHED = %w[01 02 03 04 05 06 08 09 0B].freeze
      LISTENING = "0A"
      UNIX_LISTENS = 0x10000
      UNIX_CONNECTED = "03"
      UNIX_DATAGRAM = "0002"

      def initialize(pid)
        @pid = pid
        @table = %w[tcp tcp6].flat_map { |name| internet(name) { |fields| tcp(fields) } }
                             .concat(%w[udp udp6].flat_map { |name| internet(name) { |fields| udp(fields) } })
                             .concat(unix).to_h
      end

      def [](inode) = @table[inode]

      private

      def lines(name)
        File.readlines("/proc/#{@pid}/net/#{name}").drop(1).map(&:split)
      rescue SystemCallError
        []
      end

      def internet(name)
        lines(name).map { |fields| [fields[9], yield(fields)] }
      end

      def tcp(fields)
        local, remote, state = fields.values_at(1, 2, 3)
        return Socket.new(:listener, address(local), :tcp) if state == LISTENING

        Socket.new(ESTABLISHED.include?(state) ? :stream : :idle, address(remote), :tcp)
      end

      def udp(fields)
        remote = fields[2]
        Socket.new(remote.match?(/\A0+:0+\z/) ? :idle : :datagram, address(remote))
      end

      def unix
        lines("unix").map do |fields|
          flags, type, state, inode, path = fields.values_at(3, 4, 5, 6, 7)
          [inode, Socket.new(unix_kind(flags, type, state), path || "a UNIX socket")]
        end
      end

      def unix_kind(flags, type, state)
        return :listener if flags.to_i(16).anybits?(UNIX_LISTENS)
        return :datagram if type == UNIX_DATAGRAM

        state == UNIX_CONNECTED ? :stream : :idle
      end

      # @param text [String] such as "0100007F:1F90": words in the machine's byte order
      def address(text)
        host, port = text.split(":")
        bytes = host.scan(/.{8}/).flat_map { |word| [word.hex].pack("L").bytes }
        "#{bytes.size == 4 ? bytes.join(".") : "[#{ipv6(bytes)}]"}:#{port.hex}"
      end

      def ipv6(bytes)
        require "ipaddr"
        address = IPAddr.new_ntoh(bytes.pack("C*"))
        (address.ipv4_mapped? ? address.native : address).to_s
      end
    end

    module Checks
      # Descriptors that live processes share. It is an error if several processes use one, because they take each
      # other's bytes, and a warning if it is only open in them: the requests did not show whether it will be used.
      class Descriptors < Check
        EVENT_SOURCES = { "[eventpoll]" => "an epoll instance", "[eventfd]" => "an eventfd", "[timerfd]" => "a timerfd",
                          "[signalfd]" => "a signalfd", "[io_uring]" => "an io_uring",
                          "inotify" => "an inotify instance", "[fanotify]" => "a fanotify group" }.freeze
        ANONYMOUS = "anon_inode:"
        HELD = "Nothing, if its library replaces an inherited connection before it uses it. Otherwise close it in " \
               "before_fork, or open it in after_worker_fork."
        REPLACED = "Nothing: each process opens its own when it next needs one."

        def findings
          found = evidence.generations.flat_map { |generation| generation.shared.filter_map { |one| judge(one) } }
          # Two generations may show the same descriptor, but only one of them its use.
          found.sort_by { |one| ForkSafety::Finding::SEVERITIES.index(one.severity) }
               .uniq { |one| [one.kind, one.subject, one.location] }
        end

        private

        def judge(shared)
          link = shared.open.link
          return event_source(shared, link.delete_prefix(ANONYMOUS)) if link.start_with?(ANONYMOUS)
          return socket(shared) if link.start_with?("socket:")
          return pipe(shared) if link.start_with?("pipe:")

          file(shared) if shared.open.regular?
        end

        def event_source(shared, what)
          name = EVENT_SOURCES[what] or return
          by_use(:shared_event_source, shared, name, name)
        end

        def socket(shared)
          socket = shared.socket
          return if socket.nil? || socket.kind == :idle || shared.io&.fetch(:ended)

          name = [shared.io ? shared.io[:type] : "a socket", ("to #{socket.peer}" if socket.peer)].compact.join(" ")
          case socket.kind
          when :listener
            name = "a socket that listens on #{socket.peer}"
            report(:shared_listener, shared, name, "#{name} is open in #{sharers(shared)}")
          when :datagram then report(:shared_datagram, shared, name, "#{name} is open in #{sharers(shared)}")
          else connection(shared, name)
          end
        end

        def connection(shared, name)
          tls = shared.io&.fetch(:tls)
          kind = tls ? :shared_tls : :shared_socket
          what = "the connection of #{name}#{" with its TLS session" if tls}"
          library = shared.io&.fetch(:library, nil)
          return by_use(kind, shared, name, what, advice: HELD) if library.nil? || shared.used_by_two?

          report(kind, shared, name, "#{what} is open in #{sharers(shared)}; #{library} does not use an inherited one",
                 severity: :note, advice: REPLACED)
        end

        def pipe(shared)
          return by_use(:shared_pipe, shared, "a pipe", "a pipe") unless shared.helper

          name = "a pipe to the helper #{shared.helper}"
          by_use(:shared_helper, shared, name, name)
        end

        def file(shared)
          open = shared.open
          name = "file #{File.basename(open.link.delete_suffix(" (deleted)"))}"
          if open.locked?
            return report(:inherited_lock, shared, name, "#{name} is locked by flock in #{sharers(shared)}")
          end
          return if open.append?
          return by_use(:shared_position, shared, name, name) if shared.uses.any?

          report(:shared_file, shared, name, "#{name} is open in #{sharers(shared)}")
        end

        # @param advice [String, nil] if no use was seen; nil: the kind's default
        def by_use(kind, shared, subject, what, advice: nil)
          what = "#{what} is open in #{sharers(shared)}"
          if shared.used_by_two?
            report(kind, shared, subject, "#{what}, and #{users(shared)}", severity: :error)
          else
            report(kind, shared, subject, "#{what}; #{unused(shared)}", severity: :warning, advice: advice)
          end
        end

        def users(shared)
          at = " at #{evidence.local(shared.use_site)}" if shared.use_site
          return "#{shared.uses.size} workers used it#{at}" if shared.uses.size > 1

          "a worker used it#{at} after another process had"
        end

        def unused(shared)
          return "one worker used it, and no other process was seen to" if shared.uses.any?
          return "no worker used it while it served" if shared.use_visible?

          "whether they use it cannot be seen, for it belongs to C code"
        end

        def sharers(shared) = "#{shared.holders.size} live processes (#{shared.holders.map(&:title).join(", ")})"

        def report(kind, shared, subject, message, severity: nil, advice: nil)
          finding(kind, subject: subject, message: message, location: shared.location(evidence), severity: severity,
                        advice: advice, details: { processes: shared.holders.map(&:title),
                                                   descriptor: shared.open.number, used_by: shared.uses.size })
        end
      end
    end
  end
end
