# frozen_string_literal: true

require "fcntl"
require "pando/cluster/listening/socket_file"

module Pando
  module Cluster
    module Listening
      # Opens and closes one listening socket; the rules differ between TCP and UNIX.
      #
      # @api private
      module ListenerSocket
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
            socket.setsockopt(:TCP, Listeners::TCP_DEFER_ACCEPT, spec.defer_accept.to_i) if spec.defer_accept
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
            socket.setsockopt(:TCP, Listeners::TCP_DEFER_ACCEPT, new.defer_accept.to_i)
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
    end
  end
end
