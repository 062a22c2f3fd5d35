# frozen_string_literal: true

require "rbconfig"
require "socket"
require "pando/native"

module Pando
  module ForkSafety
    module Audit
      # One open descriptor of this process as the kernel describes it, whether Ruby knows of it or
      # not. Inventory makes it, and also finds its owner.
      class Descriptor
        # See {#owner}.
        OWNERS = %i[ruby native interpreter pando stdio outside kept].freeze
        # A process that reads one takes the event from all others that share it.
        EVENT_SOURCES = %i[epoll eventfd timerfd inotify signalfd fanotify io_uring userfaultfd].freeze
        # What the kernel calls them (proc(5), /proc/pid/fd).
        ANONYMOUS = {
          "[eventpoll]" => :epoll, "[eventfd]" => :eventfd, "[timerfd]" => :timerfd, "[signalfd]" => :signalfd,
          "inotify" => :inotify, "[inotify]" => :inotify, "[fanotify]" => :fanotify, "[io_uring]" => :io_uring,
          "[userfaultfd]" => :userfaultfd, "[pidfd]" => :pidfd
        }.freeze
        ANONYMOUS_FILE = /\Aanon_inode:(.*)\z/
        NAMELESS = /\A(?:socket|pipe):\[(\d+)\]\z/
        DEVICES = %r{\A/dev/(?!shm/)}
        MEMORY = %r{\A/memfd:}
        STREAMS = [Socket::SOCK_STREAM, Socket::SOCK_SEQPACKET].freeze
        NETWORKS = [Socket::AF_INET, Socket::AF_INET6, Socket::AF_UNIX, 40].freeze # 40: AF_VSOCK, see vsock(7)
        TEMPORARY = /\d{8}-\d+-[0-9a-z]{5,8}(?=\W|\z)/ # the names that Tempfile makes
        private_constant :TEMPORARY, :ANONYMOUS_FILE, :NAMELESS, :DEVICES, :MEMORY, :STREAMS, :NETWORKS

        # @return [Integer]
        attr_reader :number
        # @return [String] what /proc says: "socket:[17]", "/var/log/app.log"
        attr_reader :target
        # @return [Symbol] :connection, :listener, :datagram, :socket, :pipe, :file, :directory, :device, :memory,
        #   :other, or one of {EVENT_SOURCES}
        attr_reader :type
        # @return [Integer, nil] of the next byte to read or write
        attr_reader :position
        # @return [Symbol] :ruby (an IO object), :native (C code alone), :interpreter (Ruby's own), :pando,
        #   :stdio, :outside (open before the application was loaded), :kept (see Pando.keep_io)
        attr_accessor :owner
        # @return [Array<IO>] its Ruby objects, the likeliest first; looked up only for suspects
        attr_accessor :ios
        # @return [String, nil] "file:line" that opened it, with {Audit.trace}
        attr_accessor :location
        # @return [Array<Integer>, nil] pids of living processes that have it open too; nil: it was not inherited
        attr_accessor :shared_with

        def initialize(row)
          @number, @target, @flags, @position, @reserved, @domain, @stream, @listening, @hung_up, @local, @peer = row
          @type = classify
          @owner = :native
          @ios = []
        end

        # @return [IO, nil]
        def io = ios.first

        # @return [Boolean] Ruby uses it for itself
        def reserved? = @reserved
        # @return [Boolean] the other side has closed, and nothing is left to read
        def hung_up? = @hung_up
        # @return [Boolean] each write goes to the end
        def append? = @flags.anybits?(File::APPEND)
        def write_only? = @flags & File::Constants::WRONLY == File::Constants::WRONLY && !@flags.anybits?(File::RDWR)
        def socket? = !@domain.nil?
        def event_source? = EVENT_SOURCES.include?(type)
        # @return [Boolean] in this process and not in its forker when it forked
        def inherited? = !shared_with.nil?

        # @return [Boolean] two processes that have it may disturb each other. Code that reads a file with
        #   pread(2), as databases do, leaves its position at 0
        def delicate?
          case type
          when :connection then !hung_up?
          when :file then position.to_i.positive? && !append?
          else type == :pipe || event_source?
          end
        end

        # @return [Boolean] neither side has an address: a socket pair
        def unnamed? = peer.nil? && local.nil?

        # @return [Integer, nil] of a socket or pipe
        def inode
          @inode = target[NAMELESS, 1]&.to_i unless defined?(@inode)
          @inode
        end

        # @return [String, nil] "127.0.0.1:6379", "/run/db.sock", "@abstract"; nil: unnamed
        def peer
          @peer_name = @peer && name_of(@peer) unless defined?(@peer_name)
          @peer_name
        end

        # @return [String, nil] this side's address
        def local
          @local_name = @local && name_of(@local) unless defined?(@local_name)
          @local_name
        end

        # @param patterns [Array<String>] of descriptors that were declared harmless, by the address of their peer or by
        #   their path: "10.0.0.5:6379", "[::1]:6379", "*:8125", "/run/collector.sock", "/srv/data/*". The syntax is
        #   that of File.fnmatch without brackets; a star matches slashes too.
        def kept_by?(patterns)
          return false if patterns.empty?

          names = socket? ? [peer, local].compact : [target]
          patterns.any? do |pattern|
            plain = pattern.gsub(/[\[\]]/) { |bracket| "\\#{bracket}" }
            names.any? { |name| File.fnmatch(plain, name) }
          end
        end

        # @return [String] what it is, in words; the same in each run
        def label = @label ||= describe

        # @return [Hash{Symbol => Object}] for JSON
        def to_h
          { number: number, type: type, label: label, target: target, position: position, peer: peer, owner: owner,
            io: io&.class&.name, location: location, shared_with: shared_with }.compact
        end

        private

        def classify
          return socket_type if socket?
          return :pipe if target.start_with?("pipe:")

          anonymous = target[ANONYMOUS_FILE, 1]
          return ANONYMOUS.fetch(anonymous, :other) if anonymous

          path_type
        end

        def socket_type
          return :listener if @listening
          return :socket unless @peer && NETWORKS.include?(@domain)

          STREAMS.include?(@stream) ? :connection : :datagram
        end

        def path_type
          return :device if DEVICES.match?(target)
          return :memory if MEMORY.match?(target)
          return :directory if @flags.anybits?(DIRECTORY)

          position ? :file : :other
        end

        # O_DIRECTORY, which Ruby does not define; its bit differs between processors.
        DIRECTORY = RbConfig::CONFIG["host_cpu"].match?(/arm|aarch64|ppc|powerpc/) ? 0o40000 : 0o200000
        private_constant :DIRECTORY

        def describe
          case type
          when :connection then connection
          when :datagram then "#{protocol} socket to #{peer || "an unnamed socket"}"
          when :listener then "#{protocol} listener on #{local}"
          when :file then "file #{target.sub(TEMPORARY, "*")}"
          when :pipe, :socket, *EVENT_SOURCES then type.to_s
          else target
          end
        end

        def connection
          return "unix socket pair" if unnamed?
          return "unix connection to #{local}" if @domain == Socket::AF_UNIX && peer.nil?
          return "#{protocol} connection from a client of #{local}" if accepted?

          "#{protocol} connection to #{peer}"
        end

        # The lowest port that Linux gives to a connecting socket, by default (ip(7)).
        EPHEMERAL = 32_768
        private_constant :EPHEMERAL

        def accepted?
          theirs = peer.to_s[/:(\d+)\z/, 1].to_i
          ours = local.to_s[/:(\d+)\z/, 1].to_i
          theirs >= EPHEMERAL && ours.positive? && ours < EPHEMERAL
        end

        def protocol
          return "unix" if @domain == Socket::AF_UNIX
          return "vsock" unless [Socket::AF_INET, Socket::AF_INET6].include?(@domain)

          @stream == Socket::SOCK_DGRAM ? "udp" : "tcp"
        end

        def name_of(bytes)
          address = Addrinfo.new(bytes)
          return address.inspect_sockaddr if address.ip?
          return unless address.unix?

          path = address.unix_path
          return if path.empty?

          path.start_with?("\0") ? "@#{path[1..]}" : path
        rescue SocketError, ArgumentError
          nil
        end
      end
    end
  end
end
