# frozen_string_literal: true

require "test_helper"
require "support/servers"
require_relative "../unit/http/support/proxy_headers"

# Promise: behind a proxy, an application knows its clients, and nobody else can make it believe in others.
class ProxiesTest < Minitest::Test
  include Support::Servers
  include HTTPSupport::ProxyHeaders

  APP = 'run ->(env) { [200, {}, [env.values_at("REMOTE_ADDR", "rack.url_scheme", "SERVER_PORT").join(" ")]] }'
  GET = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
  FORWARDED = GET.sub("\r\n\r\n", "\r\nX-Forwarded-For: 6.6.6.6, 198.51.100.7\r\nX-Forwarded-Proto: https\r\n\r\n")

  [true, false].each do |reactor|
    define_method("test_the_proxy_protocol_#{reactor ? "behind the reactor" : "in direct mode"}") do
      server = behind(reactor, 'listen "unix:plain.sock"', 'listen "unix:proxied.sock", proxy_protocol: true')

      assert_match(/^192\.0\.2\.1 http 80\z/, ask(server, "proxied", V1 + GET))
      assert_match(/^2001:db8::1 http 80\z/, ask(server, "proxied", v2(0x21, 0x21, v6) + GET))
      assert_match(/^192\.0\.2\.1 http 80\z/, ask(server, "proxied", V1 + FORWARDED), "he is no proxy of ours")
      assert_empty ask(server, "proxied", GET)
      assert_match(%r{\AHTTP/1\.1 400 }, ask(server, "plain", V1 + GET))
      assert_match(/^127\.0\.0\.1 http 80\z/, ask(server, "plain", GET))
    end

    define_method("test_trusted_proxies_#{reactor ? "behind the reactor" : "in direct mode"}") do
      server = behind(reactor, 'listen "unix:plain.sock"')
      assert_match(/^198\.51\.100\.7 https 443\z/, ask(server, "plain", FORWARDED))
      server.kill

      server = behind(reactor, 'listen "unix:plain.sock"', 'trusted_proxies "10.0.0.0/8"')
      assert_match(/^127\.0\.0\.1 http 80\z/, ask(server, "plain", FORWARDED))
    end
  end

  private

  def behind(reactor, *settings)
    serve(app: APP, config: ["workers 1", "reactor #{reactor}", *settings].join("\n"), listen: false)
  end

  def ask(server, name, bytes)
    UNIXSocket.open(File.join(server.folder, "#{name}.sock")) do |socket|
      socket.write(bytes)
      socket.read
    end
  rescue Errno::ECONNRESET, Errno::EPIPE
    ""
  end
end
