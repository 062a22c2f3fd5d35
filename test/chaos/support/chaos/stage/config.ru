# frozen_string_literal: true

# The application of a chaos run. It writes down each request before it does anything for it, and answers so that
# a client can tell whether the answer is whole, right and its own. A truant forgets that now and then, to show that
# it would be noticed.
require "digest"
require "lies"

journal = File.new(ENV.fetch("CHAOS_JOURNAL"), File::WRONLY | File::APPEND | File::CREAT)
journal.sync = true
truant = ENV.key?("CHAOS_TRUANT")

# So many bytes that only this request is answered with.
pattern = lambda do |id, bytes|
  line = "#{id}\n"
  (line * ((bytes / line.bytesize) + 1)).byteslice(0, bytes)
end

digest = lambda do |input|
  sum = Digest::SHA256.new
  while (part = input.read(16_384))
    sum << part
  end
  sum.hexdigest
end

run lambda { |env|
  kind, id = env["PATH_INFO"].split("/").last(2)
  forgets = truant && kind == "get" && id.end_with?("7")
  forgets || journal.syswrite("#{env["REQUEST_METHOD"]} #{id} #{Process.pid}\n")
  headers = { "content-type" => "text/plain", "x-id" => id, "x-pid" => Process.pid.to_s,
              "x-pool" => Lies.role&.context&.pool.to_s }
  argument = env["QUERY_STRING"]

  case kind
  when "post", "upload" then [200, headers, ["#{id} #{digest.call(env["rack.input"])}"]]
  when "large" then [200, headers, [pattern.call(id, argument.to_i)]]
  when "stream"
    parts = pattern.call(id, argument.to_i).scan(/.{1,4096}/m)
    [200, headers, Enumerator.new { |answer| parts.each { |part| answer << part.tap { sleep 0.001 } } }]
  when "slow"
    sleep argument.to_f
    [200, headers, ["#{id} slow"]]
  when "lie"
    Lies.tell(argument.gsub("%20", " "))
    [200, headers, ["#{id} lied"]]
  else [200, headers, ["#{id} get"]]
  end
}
