# frozen_string_literal: true

require "fcntl"
require "socket"

module Pando
  module Cluster
    module Listening
      # Opens and closes one listening socket; the rules differ between TCP and UNIX.
      #
      # @api private
      module ListenerSocket
        # The kernel's constant, which Ruby's Socket does not name on every platform (tcp(7)).
        TCP_DEFER_ACCEPT = 9

        module_function

        # @raise [BootError]
        def open(spec)
          prepare(spec.tcp? ? open_tcp(spec) : open_unix(spec))
        rescue Errno::EADDRINUSE
          raise BootError, "cannot listen on #{spec}: another process listens there; stop it or choose another address"
        rescue SystemCallError, SocketError => e
          raise BootError, "cannot listen on #{spec}: #{e.message}"
        end

        # Many wake up for one connection: those that come late must not wait.
        # @return [Socket]
        def prepare(socket)
          socket.close_on_exec = true
          socket.fcntl(Fcntl::F_SETFL, socket.fcntl(Fcntl::F_GETFL) | Fcntl::O_NONBLOCK)
          socket
        end

        def open_tcp(spec)
          address = Addrinfo.tcp(spec.host, spec.port)
          listening(Socket.new(address.afamily, :STREAM, 0), spec, address) do |socket|
            socket.setsockopt(:SOCKET, :REUSEADDR, 1)
            socket.setsockopt(:IPV6, :V6ONLY, 1) if address.ipv6?
            # Accepted sockets inherit it: no extra call per connection.
            socket.setsockopt(:TCP, :NODELAY, 1) if spec.tcp_nodelay
            socket.setsockopt(:TCP, TCP_DEFER_ACCEPT, spec.defer_accept.to_i) if spec.defer_accept
          end
        end

        def open_unix(spec)
          return listening_unix(spec, "\0#{spec.path}") if spec.kind == :abstract

          SocketFile.take(spec.path) { masked(spec) { listening_unix(spec, spec.path) } }
        end

        def listening_unix(spec, name) = listening(Socket.new(:UNIX, :STREAM, 0), spec, Socket.sockaddr_un(name))

        def listening(socket, spec, address)
          yield socket if block_given?
          socket.bind(address)
          File.chmod(spec.mode, spec.path) if spec.kind == :unix && spec.mode
          socket.listen(spec.backlog)
          socket
        rescue StandardError
          socket.close
          raise
        end

        def masked(spec)
          before = spec.umask && File.umask(spec.umask)
          yield
        ensure
          File.umask(before) if before
        end

        # @param descriptor [Integer] that this process was handed
        # @return [TCPServer, UNIXServer]
        def server(descriptor)
          kind = Sys.borrow(descriptor, Socket) { |any| any.local_address.unix? ? UNIXServer : TCPServer }
          server = kind.for_fd(descriptor)
          server.close_on_exec = true
          server
        end

        # @return [String] as the config writes it
        def name(socket)
          address = socket.local_address
          return "unix:#{address.unix_path.sub(/\A\0/, "@")}" if address.unix?

          host = address.ipv6? ? "[#{address.ip_address}]" : address.ip_address
          "#{host}:#{address.ip_port}"
        end

        # @return [Boolean] whether it listens where the configuration says
        def at?(socket, spec)
          address = socket.local_address
          return !spec.tcp? && name(socket) == spec.to_s if address.unix?
          return false unless spec.tcp? && address.ip_port == spec.port

          wanted = Addrinfo.tcp(spec.host, spec.port)
          wanted.ip_address == address.ip_address || (wanted.ipv4? && any?(wanted) && any?(address) && both?(socket))
        rescue SocketError
          false # whoever opens it will say so
        end

        def any?(address) = %w[0.0.0.0 ::].include?(address.ip_address)

        # Of "::", every IPv4 address as well (ipv6(7)).
        def both?(socket) = !socket.getsockopt(:IPV6, :V6ONLY).bool

        # @return [Boolean] whether connections can be accepted from it
        def listens?(socket)
          socket.getsockopt(:SOCKET, :ACCEPTCONN).bool && socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM
        end

        # The options of another line for the same address.
        # @raise [SystemCallError]
        def adjust(socket, old, new)
          socket.listen(new.backlog) unless old.backlog == new.backlog
          if new.tcp?
            socket.setsockopt(:TCP, :NODELAY, new.tcp_nodelay ? 1 : 0)
            socket.setsockopt(:TCP, TCP_DEFER_ACCEPT, new.defer_accept.to_i)
          elsif new.kind == :unix && [old.mode, old.umask] != [new.mode, new.umask]
            File.chmod(new.mode || (0o777 & ~(new.umask || File.umask)), new.path)
          end
        end

        # Nobody is let in any more, whoever else has the socket open.
        def refuse(socket)
          socket.shutdown
        rescue Errno::ENOTCONN, Errno::EINVAL
          nil # it is shut already
        end

        # Of a listening TCP socket, the number that tcp_info calls tcpi_unacked is the length of its queue.
        # @return [Integer, nil]
        def waiting(socket)
          return if socket.local_address.unix?

          socket.getsockopt(:TCP, :INFO).data.unpack1("x24L")
        end

        # @return [String, nil] of its file, without links that may lead elsewhere later
        def real_path(spec)
          File.join(File.realpath(File.dirname(spec.path)), File.basename(spec.path)) if spec.kind == :unix && spec.path
        rescue SystemCallError
          nil # somebody tidied up before us
        end

        # @return [Array(Integer, Integer), nil] what tells the file of a UNIX socket from any other
        def file(path)
          stat = path && File.lstat(path)
          stat && [stat.dev, stat.ino]
        rescue SystemCallError
          nil # somebody tidied up before us
        end

        # The number of a file is not used again while its socket is open.
        # @param file [Array, nil] see .file: another server may have put its own there since
        def unlink(path, file)
          File.unlink(path) if file && file == self.file(path)
        rescue SystemCallError
          nil # somebody tidied up before us
        end
      end

      # The place of a UNIX socket in the file system, which one server at a time may take: between the look whether
      # somebody serves what is there and one's own listen(2), another one that starts would see the same.
      #
      # Used by ListenerSocket, in the monitor.
      #
      # @api private
      module SocketFile
        # Seconds that another server has for it. Who may read a folder may lock it, and for ever.
        PATIENCE = 5.0
        PAUSE = 0.01

        class << self
          # @param path [String]
          # @param patience [Float] seconds
          # @yield when nobody is there; it is to be bound and listened on meanwhile
          # @return [Object] what the block returns
          # @raise [BootError] a file is there that is no socket
          # @raise [Errno::EADDRINUSE] somebody serves it
          def take(path, patience: PATIENCE)
            folder = locked(File.dirname(path), patience)
            remove_stale(path)
            yield
          ensure
            folder&.close
          end

          # @param path [String]
          # @return [Integer, nil] the process that listens there; nil: none does, or it cannot be told
          def holder(path)
            socket = Socket.new(:UNIX, :STREAM, 0)
            return unless socket.connect_nonblock(Socket.sockaddr_un(path), exception: false) == 0

            pid = socket.getsockopt(:SOCKET, :PEERCRED).data.unpack1("i")
            pid if pid.positive? # 0: it is of another PID namespace
          rescue SystemCallError, ArgumentError
            nil
          ensure
            socket&.close
          end

          private

          # @return [File, nil] the lock ends when it is closed; nil: there is none to be had here
          def locked(path, patience)
            folder = File.new(path)
            deadline = Sys.now + patience
            sleep(PAUSE) until folder.flock(File::LOCK_EX | File::LOCK_NB) || Sys.now > deadline
            folder
          rescue SystemCallError
            folder&.close
          end

          # A file left by a killed server is removed; one that somebody serves is not.
          def remove_stale(path)
            return unless File.exist?(path)
            raise BootError, "cannot listen on unix:#{path}: what is there is not a socket" unless File.socket?(path)

            served?(path) ? raise(Errno::EADDRINUSE) : File.unlink(path)
          rescue Errno::ENOENT
            nil # its server has just removed it
          end

          # Without waiting for room in its queue: one that is full is somebody's.
          def served?(path)
            socket = Socket.new(:UNIX, :STREAM, 0)
            socket.connect_nonblock(Socket.sockaddr_un(path), exception: false)
            true
          rescue Errno::ECONNREFUSED
            false
          rescue Errno::EAGAIN
            true
          ensure
            socket&.close
          end
        end
      end
    end
  end
end
