# frozen_string_literal: true

require "fcntl"
require "pando/fork_safety/weak_set"
require "pando/native"
require "socket"

module Pando
  module ForkSafety
    # The files that replace the one beneath an IO: /dev/null, and for sockets one
    # whose peer has hung up. (On /dev/null, a socket's own calls would fail with
    # ENOTSOCK, which no client takes for a lost connection.) They are open only
    # during one replace_all; the IOs hold copies.
    Substitutes = Struct.new(:null, :hung_up) do
      def self.open
        File.open(File::NULL, "r+") do |null|
          hung_up, peer = UNIXSocket.pair
          peer.close
          yield new(null, hung_up)
        ensure
          hung_up&.close
        end
      end

      # @param number [Integer] a descriptor's
      def include?(number) = [null, hung_up].any? { |io| io.fileno == number }
    end

    # The descriptors under Ruby's IO objects: which of them stay, and how the
    # others are replaced. IO#close would flush what the parent had buffered, TLS
    # would send close_notify, and the next file would get the free number while a
    # library still uses it as its socket. IO#reopen flushes too. dup3(2) does none
    # of this.
    module Descriptors
      STDIO = (0..2)
      # IO's own methods, because a class may have redefined them.
      FILENO, CLOSED, STAT, FCNTL, FLUSH, READPARTIAL =
        %i[fileno closed? stat fcntl flush readpartial].map { |name| IO.instance_method(name) }
      CHUNK = 65_536
      private_constant :FILENO, :CLOSED, :STAT, :FCNTL, :FLUSH, :READPARTIAL, :CHUNK

      @kept = {}.compare_by_identity
      @private = WeakSet.new

      class << self
        def keep(ios)
          found = ios.map { |one| IO.try_convert(one) or raise TypeError, "not an IO: #{one.inspect}" }
          @kept.delete_if { |io, _| !open?(io) }
          found.each { |io| @kept[io] = @kept[Sys.write_half(io)] = true if open?(io) }
          nil
        end

        # @return [Array<Integer>] numbers of the kept descriptors
        def kept_numbers = @kept.each_key.filter_map { |io| number(io) }

        # Marks an IO that no forked child may hold open: a client's connection must end
        # when its own process closes it. Children are cut off from it before the user's hooks.
        def keep_from_children(io)
          @private.add(io)
          nil
        end

        # @return [Integer] how many of these are open
        def private_count = @private.to_a.count { |io| number(io) }

        # @return [Integer] how many were replaced
        def cut(found)
          return 0 if found.empty?

          Substitutes.open do |substitutes|
            found.count { |one| same?(one) && !substitutes.include?(one.number) && cut_one(one, substitutes) }
          end
        end

        # In a new child.
        def cut_off
          doomed = @private.to_a.select { |io| number(io) }
          return if doomed.empty?

          Substitutes.open do |substitutes|
            doomed.each { |io| replace(io, substitutes) }
          end
          @private = WeakSet.new # they no longer hold a connection
          nil
        end

        # @return [Integer] how many IOs were replaced
        def replace_all
          spared = kept_numbers
          doomed = ObjectSpace.each_object(IO).select { |io| replaceable?(io, spared) }
          Substitutes.open do |substitutes|
            doomed.count { |io| replace(io, substitutes) }
          end
        end

        # @return [Integer, nil] nil: it is closed, or was never opened
        def number(io)
          FILENO.bind_call(io) if open?(io)
        rescue IOError
          nil # another thread has just closed it
        end

        private

        # Several IO objects may have one number, so this judges numbers, not objects.
        def replaceable?(io, spared)
          fd = number(io)
          fd && !STDIO.cover?(fd) && !spared.include?(fd) && !log?(io)
        end

        # Processes that only append to a file do not share a position.
        def log?(io)
          return false unless STAT.bind_call(io).file?

          FCNTL.bind_call(io, Fcntl::F_GETFL).anybits?(File::APPEND)
        rescue SystemCallError
          false
        end

        # An IO that has outlived its descriptor may have the number of a substitute, or of the interpreter's timer,
        # which a child creates again.
        def replace(io, substitutes)
          fd = number(io) or return false # another thread has closed it
          return false if substitutes.include?(fd) || Sys.reserved_fd?(fd)

          socket = STAT.bind_call(io).socket?
          Sys.replace_fd(fd, substitutes.null)
          drop_buffers(io)
          Sys.replace_fd(fd, substitutes.hung_up) if socket
          true
        rescue Errno::EBADF, IOError
          false # the object outlived its descriptor
        end

        # Each of its objects may have buffered something. A descriptor of C code may have no object.
        def cut_one(found, substitutes)
          found.ios.each { |io| replace(io, substitutes) if number(io) == found.number }
          Sys.replace_fd(found.number, found.socket? ? substitutes.hung_up : substitutes.null)
          true
        rescue Errno::EBADF
          false
        end

        # By now the number may belong to another file.
        def same?(found)
          File.readlink("/proc/self/fd/#{found.number}") == found.target
        rescue SystemCallError
          false
        end

        # Drops both buffers while /dev/null is beneath: unwritten data goes there, and
        # unread data is read and discarded.
        def drop_buffers(io)
          attempt { FLUSH.bind_call(io) }
          attempt { loop { READPARTIAL.bind_call(io, CHUNK) } }
        end

        def attempt
          yield
        rescue SystemCallError, IOError
          nil # at end of file, or not open in this direction
        end

        def open?(io)
          !CLOSED.bind_call(io)
        rescue IOError
          false # allocated, never opened
        end
      end
    end
  end
end
