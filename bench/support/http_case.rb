# frozen_string_literal: true

module Bench
  # One kind of load: how many workers and connections, keep-alive or not, and a small or a large head.
  #
  # @!attribute workers [Integer]
  # @!attribute connections [Integer]
  # @!attribute keep [Boolean] whether a connection serves several requests
  # @!attribute large [Boolean] whether the head is as large as a browser's
  HTTPCase = Struct.new(:workers, :connections, :keep, :large, keyword_init: true) do
    # With Host, 13 header fields.
    const_set(:BROWSER, {
      "User-Agent" => "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
      "Accept" => "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
      "Accept-Language" => "en-GB,en;q=0.5", "Accept-Encoding" => "gzip, deflate, br",
      "Referer" => "http://shop.example/products/rope?page=2", "DNT" => "1",
      "Cookie" => "_session=#{"0123456789abcdef" * 8}; theme=dark", "Upgrade-Insecure-Requests" => "1",
      "Sec-Fetch-Dest" => "document", "Sec-Fetch-Mode" => "navigate", "Sec-Fetch-Site" => "same-origin",
      "If-None-Match" => 'W/"5d41402abc4b2a76b9719d911017c592"'
    }.freeze)

    # @return [Hash{String => String}] the fields in addition to Host
    def headers
      fields = large ? self.class::BROWSER : {}
      keep ? fields : fields.merge("Connection" => "close")
    end

    def name
      ["#{workers} #{workers == 1 ? "worker" : "workers"}", "#{connections} connections",
       keep ? "keep-alive" : "close", large ? "13 header fields" : "hello"].join(", ")
    end
  end
end
