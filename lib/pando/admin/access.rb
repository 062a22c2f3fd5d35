# frozen_string_literal: true

require "digest"
require "fileutils"
require "ipaddr"
require "securerandom"

module Pando
  module Admin
    # Decides who may do what at the admin addresses. Everybody who can reach a local address may read. Commands need
    # the token; so does reading at an address that other machines can reach, but for what a probe or Prometheus needs.
    #
    # A browser must not be made to send commands or to read for a foreign page, so the names in Host and Origin are
    # checked: see DNS rebinding, and cross-site request forgery.
    class Access
      # A request that is refused: status and reason.
      Denied = Struct.new(:status, :reason)

      # Characters of a token that counts as one.
      LEAST = 16
      LONGEST = 4096
      # A host name with its port (RFC 9110 section 7.2).
      HOST = /\A(\[[\h:.]+\]|[\w.-]+)(?::\d{1,5})?\z/

      # @param settings [Hash{String => String}] "token_file", "token_env", "hosts"; "token": the path of a token that
      #   is made if there is none
      def initialize(settings, environment = ENV)
        @hosts = ["localhost", *settings["hosts"].to_s.split(",").map(&:downcase)]
        @file = settings["token_file"]
        @variable = settings["token_env"]
        @secret = environment[@variable] if @variable
        @own = settings["token"] unless @file || @variable
        make(@own) if @own
      end

      # @param env [Hash] of Rack @param open [Boolean] whether anybody may read this, @param command [Boolean]
      # @return [Denied, nil] nil: it may go on
      def check(env, open:, command: false)
        foreign(env) || (unless open || (!command && local?(env["pando.listener"]))
                           unauthorized(env)
                         end)
      end

      # @return [String, nil] nil: there is none
      def token
        text = @file || @own ? read(@file || @own) : @secret
        text = text.to_s.strip
        text if text.size.between?(LEAST, LONGEST)
      end

      private

      # Every browser sends a Host, and none can ask at a unix socket. A probe that speaks HTTP/1.0 may send none.
      def foreign(env)
        host = env["HTTP_HOST"]&.b
        unless host.nil? || env["pando.listener"].local_address.unix? || known?(host)
          return Denied.new(421, "the name in Host is not known here: ask for localhost or an IP address, or add the " \
                                 "name to `admin hosts:`")
        end

        origin = env["HTTP_ORIGIN"]
        return if origin.nil? || ["http://#{host}", "https://#{host}"].include?(origin)

        Denied.new(403, "requests of other web pages are refused")
      end

      def known?(host)
        name = host[HOST, 1] or return false
        @hosts.include?(name.downcase) || !IPAddr.new(name).nil?
      rescue IPAddr::Error
        false
      end

      def local?(listener)
        address = listener.local_address
        address.unix? || address.ipv4_loopback? || address.ipv6_loopback?
      end

      def unauthorized(env)
        expected = token or return Denied.new(403, absence)
        given = env["HTTP_AUTHORIZATION"].to_s.b[/\ABearer +(\S+)\s*\z/i, 1]
        return Denied.new(401, "this needs the token: Authorization: Bearer TOKEN") unless given
        return if same?(given, expected)

        Denied.new(401, "this is not the token")
      end

      def absence
        where = @file ? "#{@file}, the file of `admin token_file:`," : "the variable of `admin token_env:`"
        return "#{where} has no token of #{LEAST} characters or more, or cannot be read" if @file || @variable
        return "there is no token beside the control socket: restart the server, or set `admin token_file:`" if @own

        "there is no token: set `admin token_file:` or `admin token_env:`"
      end

      # Takes the same time wherever the two differ.
      def same?(one, other)
        bytes = [one, other].map { |text| Digest::SHA256.digest(text).bytes }
        bytes.first.zip(bytes.last).sum { |left, right| left ^ right }.zero?
      end

      def read(path)
        File.read(path, LONGEST)
      rescue SystemCallError
        nil
      end

      # A token outlives the server, so that whoever has read it need not read it again.
      def make(path)
        return if token && File.stat(path).then { |stat| stat.owned? && stat.mode.nobits?(0o077) }

        fresh = "#{path}.#{::Process.pid}"
        FileUtils.rm_f(fresh) # a killed process with the same number may have left it
        File.open(fresh, File::WRONLY | File::CREAT | File::EXCL, 0o600) { |file| file.puts(SecureRandom.urlsafe_base64(32)) }
        File.rename(fresh, path)
      rescue SystemCallError
        nil # commands are refused, and the refusal says why
      end
    end
  end
end
