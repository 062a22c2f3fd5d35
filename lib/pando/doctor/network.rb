# frozen_string_literal: true

module Pando
  module Doctor
    # What the kernel's tables in /proc/PID/net said of sockets when it was made, by their inode. A connection that its
    # peer has reset is in none of them any more.
    class Network
      # `kind` is :stream, :listener, :datagram or :idle, `peer` says where it leads, for a human.
      Socket = Struct.new(:kind, :peer, :family) do
        def tcp? = family == :tcp
      end

      ESTABLISHED = %w[01 02 03 04 05 06 08 09 0B].freeze
      LISTENING = "0A"
      UNIX_LISTENS = 0x10000
      UNIX_CONNECTED = "03"
      UNIX_DATAGRAM = "0002"
      private_constant :ESTABLISHED, :LISTENING, :UNIX_LISTENS, :UNIX_CONNECTED, :UNIX_DATAGRAM

      # @param pid [Integer] whose network it is
      def initialize(pid)
        @pid = pid
        @table = %w[tcp tcp6].flat_map { |name| internet(name) { |fields| tcp(fields) } }
                             .concat(%w[udp udp6].flat_map { |name| internet(name) { |fields| udp(fields) } })
                             .concat(unix).to_h
      end

      # @param inode [String]
      # @return [Socket, nil]
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

      # "0100007F:1F90" as the kernel has it: words in the machine's order.
      def address(text)
        host, port = text.split(":")
        words = host.scan(/.{8}/).map { |word| [word.hex].pack("L").bytes }.flatten
        "#{words.size == 4 ? words.join(".") : "[#{IPv6.text(words)}]"}:#{port.hex}"
      end

      # @api private
      module IPv6
        def self.text(bytes)
          require "ipaddr"
          address = IPAddr.new_ntoh(bytes.pack("C*"))
          (address.ipv4_mapped? ? address.native : address).to_s
        end
      end
    end
  end
end
