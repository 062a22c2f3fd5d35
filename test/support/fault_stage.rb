# frozen_string_literal: true

require "fileutils"
require "openssl"
require "rbconfig"
require "socket"
require "tmpdir"
require "support/checkout"

module Support
  # The peers of the planted faults in test/fixtures/doctor: a server that answers lines, the same with TLS, and a C
  # library. Started once for all of them.
  class FaultStage
    FLAGS = %w[-D_GNU_SOURCE -O1 -Wall -Wextra -Werror -shared -fPIC -pthread].freeze

    @lock = Mutex.new

    # @return [Hash{String => String}] for the environment of a run
    def self.env = @lock.synchronize { @env ||= new.env }

    # @return [Hash{String => String}]
    attr_reader :env

    def initialize
      plain = TCPServer.new("127.0.0.1", 0)
      serve(plain)
      secure = TCPServer.new("127.0.0.1", 0)
      serve(OpenSSL::SSL::SSLServer.new(secure, context))
      @env = { "FAULT_PORT" => plain.local_address.ip_port.to_s, "FAULT_TLS_PORT" => secure.local_address.ip_port.to_s,
               "FAULT_LIBRARY" => library }
    end

    private

    # One thread per connection; all of them end with the tests.
    def serve(server)
      Thread.new do
        loop { answer(server.accept) }
      rescue OpenSSL::SSL::SSLError
        retry # the client has left
      end
    end

    def answer(connection)
      Thread.new do
        connection.each_line { |line| line == "RESET\n" ? reset(connection) : connection.puts("PONG") }
      rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
        nil # the client has closed the connection
      end
    end

    # Resets a connection, like a server that closes it before it has read everything (tcp(7), SO_LINGER in socket(7)).
    def reset(connection)
      connection.setsockopt(Socket::Option.linger(true, 0))
      connection.close
    end

    def context
      key = OpenSSL::PKey::RSA.new(2048)
      certificate = OpenSSL::X509::Certificate.new
      certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
      certificate.public_key = key.public_key
      certificate.serial = 1
      certificate.not_before = Time.now
      certificate.not_after = Time.now + 3600
      certificate.sign(key, "SHA256")
      OpenSSL::SSL::SSLContext.new.tap { |one| one.add_certificate(certificate, key) }
    end

    def library
      folder = Dir.mktmpdir
      owner = Process.pid
      at_exit { FileUtils.rm_rf(folder) if Process.pid == owner }
      path = File.join(folder, "channel.so")
      system(ENV.fetch("CC", RbConfig::CONFIG["CC"]), *FLAGS, Checkout.path("test/fixtures/doctor/channel.c"), "-o",
             path)
      File.exist?(path) ? path : raise("channel.c does not compile")
    end
  end
end
