# frozen_string_literal: true

require "ipaddr"

module HTTPSupport
  # Headers of the PROXY protocol.
  module ProxyHeaders
    SIGNATURE = "\r\n\r\n\0\r\nQUIT\n".b
    V1 = "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"

    def v2(command, family, block)
      SIGNATURE + [command, family, block.bytesize].pack("CCn") + block.b
    end

    def v4(source = "192.0.2.1")
      IPAddr.new(source).hton + IPAddr.new("198.51.100.2").hton + [56_324, 443].pack("nn")
    end

    def v6(source = "2001:db8::1")
      IPAddr.new(source).hton + IPAddr.new("2001:db8::2").hton + [56_324, 443].pack("nn")
    end
  end
end
