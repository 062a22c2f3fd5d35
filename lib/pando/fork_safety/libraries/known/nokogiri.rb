# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "nokogiri" do
  fine note: "It starts no threads; what libxml2 may fetch for a document, which it does not by default, is fetched " \
             "while that is parsed.",
       source: "https://github.com/sparklemotion/nokogiri/blob/v1.18.10/lib/nokogiri/xml/parse_options.rb (NONET), " \
               "nm -D of 1.18.10 and 1.19.7"
end
