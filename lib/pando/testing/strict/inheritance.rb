# frozen_string_literal: true

require "socket"
require "fcntl"
require "pando/fork_safety/audit"
require "pando/testing/strict/watch"

module Pando
  module Testing
    class Strict
      # The descriptors that children inherit, and which of them they have used. An inherited connection is not a fault
      # yet, because many libraries notice the fork and open their own. Using it is a fault.
      class Inheritance
        # One descriptor, as it was at the fork.
        Heirloom = Struct.new(:fd, :link, :kind, :name, :mark, :ios) do
          # @return [String, nil] "file:line" of the first use
          def site = ios.lazy.filter_map { |io| Watch.site(io) }.first
        end
        KINDS = { socket: :shared_socket, pipe: :shared_pipe, file: :shared_position }.freeze
        # Offsets in struct tcp_info (linux/tcp.h): data segments in and out, of 4 bytes each.
        SEGMENTS = 152
        private_constant :Heirloom, :KINDS, :SEGMENTS

        # Called in the forking process.
        # @param keep [Array<String>] patterns of peers and paths that are shared on purpose
        def initialize(outputs, keep = [])
          @forker = Process.pid
          ios = ObjectSpace.each_object(IO).select { |io| open?(io) }
          spared = [0, 1, 2, *numbers(outputs), *ForkSafety::Audit.kept_numbers(keep)]
          by_number = ios.group_by(&:fileno)
          @heirlooms = Dir.children("/proc/self/fd").map(&:to_i).filter_map do |fd|
            heirloom(fd, by_number.fetch(fd, [])) unless spared.include?(fd)
          end
        end

        # Called in the heir.
        def watch
          @heirlooms.flat_map(&:ios).each { |io| Watch.over(io) }
          nil
        end

        # Called in the heir.
        def used
          @heirlooms.select { |one| used?(one) }.map { |one| finding(one) }
        end

        private

        def numbers(outputs) = outputs.grep(IO).select { |io| open?(io) }.map(&:fileno)

        def open?(io)
          !io.closed?
        rescue IOError
          false # allocated, never opened
        end

        def heirloom(fd, ios)
          link = File.readlink("/proc/self/fd/#{fd}")
          case link
          when /\Asocket:/ then socket(fd, link, ios)
          when /\Apipe:/ then Heirloom.new(fd, link, :pipe, "pipe", nil, ios)
          when %r{\A/(?!dev/|proc/|memfd:)} then file(fd, link, ios)
          end
        rescue SystemCallError
          nil # the descriptor of the directory listing itself
        end

        def socket(fd, link, ios)
          on(fd) do |socket|
            next if socket.getsockopt(:SOCKET, :ACCEPTCONN).bool

            name = peer(socket)
            name && Heirloom.new(fd, link, :socket, name, segments(socket), ios)
          end
        end

        # Leaves the descriptor open.
        def on(fd, &) = Sys.borrow(fd, BasicSocket, &)

        def peer(socket)
          address = socket.remote_address
          address.ip? ? address.inspect_sockaddr : "a Unix socket #{address.unix_path}".strip
        rescue SystemCallError
          nil # not connected
        end

        def segments(socket)
          socket.getsockopt(:TCP, :INFO).data.byteslice(SEGMENTS, 8)
        rescue SystemCallError, SocketError
          nil # not TCP
        end

        def file(fd, link, ios)
          info = File.read("/proc/self/fdinfo/#{fd}")
          flags = info[/^flags:\s*(\d+)/, 1].oct
          return if flags.anybits?(File::APPEND) || !File.file?(link)

          Heirloom.new(fd, link, :file, File.basename(link), info[/^pos:\s*(\d+)/, 1], ios)
        end

        def used?(one)
          case one.kind
          when :file then position(one.fd) != one.mark
          when :socket then one.site || talked?(one)
          else one.site
          end
        end

        # Reads the position in the forking process, which has not moved it.
        def position(fd)
          File.read("/proc/#{@forker}/fdinfo/#{fd}")[/^pos:\s*(\d+)/, 1]
        rescue SystemCallError
          @heirlooms.find { |one| one.fd == fd }.mark # the forking process has ended, so the position is unknown
        end

        # Whether Ruby or C code has used the connection.
        def talked?(one)
          return false unless one.mark && File.readlink("/proc/self/fd/#{one.fd}") == one.link

          on(one.fd) { |socket| segments(socket) } != one.mark
        rescue SystemCallError
          false # it was closed meanwhile
        end

        def finding(one)
          ForkSafety::Finding.new(KINDS.fetch(one.kind), severity: :error, subject: one.name, message: message(one),
                                                         location: one.site)
        end

        def message(one)
          return "The position of #{one.link}, open since before the refork, was moved by two processes." if
            one.kind == :file

          "A #{one.kind} from before the refork (#{one.name}) was used after it, while another process has it open."
        end
      end
    end
  end
end
